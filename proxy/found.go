package proxy

import (
	"strings"

	"github.com/unbroken-llm/unbroken/dialect"
)

// found are abilities that were looked up before: to look one up is to try every pattern
// of a table, which took a fifth of the time of a short call. The zero value is ready.
type found map[foundKey]dialect.Ability

type foundKey struct {
	o              *origin
	dialect, model string
}

// maxModel bounds the name of a model that is kept, in bytes: it is the caller's word.
const maxModel = 256

// keep keeps an answer. When there are too many, all are looked up anew.
func (f *found) keep(k foundKey, ab dialect.Ability) {
	if len(k.model) > maxModel {
		return
	}
	if *f == nil || len(*f) >= maxLearned {
		*f = found{}
	}
	k.model = strings.Clone(k.model) // not the request that it is part of
	(*f)[k] = ab
}
