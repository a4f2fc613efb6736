package redisstore

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/ledger"
)

// keys spells the keys. Those of one turn share a hash tag, so that on a Cluster
// a script finds them in one slot. Nothing a client sent is part of a key: turns
// and questions are hashes, owners and secrets are named by this program.
//
//	<prefix>{<turn>}       hash    the record without its log
//	<prefix>{<turn>}:log   string  the log
//	<prefix>{<turn>}:fence string  its largest fence; outlives the record
//	<prefix>live:<owner>   string  there while the process lives
//	<prefix>ask:<ask>      zset    turns that may be adopted, by time of offer
//	<prefix>secret:<name>  string  what all processes agree on
//	<prefix>memo:<memo>    string  what later requests need of a turn that is over
//	<prefix>run:<run>      hash    a run of the ledger
//	<prefix>line:<lineage> zset    runs by the history of their last step, by time of write
//	<prefix>runs           zset    the runs last written
type keys struct{ prefix string }

// turn returns the three keys of a turn, in the order all scripts expect.
func (k keys) turn(t checkpoint.TurnKey) []string {
	base := k.prefix + "{" + t.String() + "}"
	return []string{base, base + ":log", base + ":fence"}
}

func (k keys) live(o checkpoint.Owner) string { return k.prefix + "live:" + string(o) }

func (k keys) ask(a checkpoint.AskKey) string { return k.prefix + "ask:" + a.String() }

func (k keys) secret(name string) string { return k.prefix + "secret:" + name }

func (k keys) memo(m checkpoint.MemoKey) string { return k.prefix + "memo:" + m.String() }

func (k keys) run(r ledger.RunKey) string { return k.prefix + "run:" + r.String() }

func (k keys) lineage(scope checkpoint.Scope, lineage string) string {
	sum := sha256.Sum256(append(scope[:], lineage...))
	return k.prefix + "line:" + hex.EncodeToString(sum[:])
}

func (k keys) runs() string { return k.prefix + "runs" }
