// Package redisstore keeps checkpoints in Redis (DESIGN §8): a [checkpoint.Store]
// with all optional powers, on a standalone server, behind Sentinel or on a
// Cluster.
//
// Its law: Redis may be slow, frozen, full, failing over or gone, and no stream
// learns of it. Nothing here blocks a caller longer than its context or
// [Config].Timeout; while Redis is away calls are refused at once, what is not
// yet written waits in bounded memory, and only the changes of that state are
// logged. Nobody claims, and nobody is declared dead, by a process that cannot
// reach Redis.
//
// keys.go is the only place a key is spelled and scripts.go the only Lua. Every
// write carries its fence and is repeatable, because an answer can be lost after
// the effect. A log is appended to, never rewritten, so that cost is linear in
// the text.
//
// Redis 5 or later. Layer 4: imports checkpoint, go-redis, gobreaker.
package redisstore
