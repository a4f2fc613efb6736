// Command agent is a small agent that survives kill -9 at any point, because it asks
// the run ledger of its sidecar what it may do (docs/LEDGER.md).
//
//	unbroken &                                   # the sidecar; admin on 127.0.0.1:8791
//	go run ./examples/agent -run trip-17 -task 'Pay 5 for the ticket, and note it.'
//
// Run it again with the same -run and -dir after a crash, and it goes on. It keeps
// two things in -dir: the conversation, saved after each turn, and the effects of its
// tools, one line each:
//
//	pay   payments.log  moves money: begun once, and then never again (never_replay)
//	note  notes.log     a note twice is no harm (replay)
//	job   jobs.log      can be asked by operation id whether it was done (reconnect)
//
// All else the ledger knows: which calls were asked for, which attempts were
// announced, and the results until the next inference has carried them. With -silent
// it tells the ledger nothing, as most agents do, and is told "unknown" after a crash
// instead of what to do. With -plain it asks for whole answers rather than for streams,
// which the ledger learns its batches from as well.
//
// It exits with 0 when the run has ended, 3 when a person must decide, 4 when another
// process has claimed the run, and 1 when it could not go on; start it again then.
package main
