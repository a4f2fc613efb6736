// Command unbroken heals broken LLM streams; see README.md.
//
// Its law: this package wires and explains, it decides nothing about a turn.
// Every setting is one row of the table in field.go, from which the keys of the
// file, the environment variables, the flags, the annotated example and the
// checks derive. Precedence: default < file < environment < flag.
//
//	main.go     process: arguments, environment, signals  -> run
//	root.go     commands: serve, demo, faults, check, health, version, completion
//	field.go    the table        load.go  file < env < flags, with provenance
//	wire.go     settings         -> proxy.Config
//	schema.go   the table        -> JSON schema, for editors
//	serve.go    listeners, admin, drain
//	reload.go   all of it again, for the requests to come; changes.go when
//
// Exit status: 0 done, 1 failed, 2 misused, 130 or 143 ended by a second signal.
//
// Layer 6: imports everything; nothing imports it.
package main
