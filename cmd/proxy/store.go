package main

import (
	"fmt"
	"strings"
)

const storeMemory = "memory"

// storeValue names a store. Stores that DESIGN §11 lists and this build lacks
// are told from words that mean nothing.
type storeValue struct{ p *string }

var laterStores = []string{"file:", "redis://", "rediss://", "redis+sentinel://", "redis+cluster://"}

func (v storeValue) set(text string) error {
	if text == storeMemory {
		*v.p = text
		return nil
	}
	for _, prefix := range laterStores {
		if strings.HasPrefix(text, prefix) {
			return fmt.Errorf("the store %s… is not in this build yet: use %s", prefix, storeMemory)
		}
	}
	return fmt.Errorf("%q is no store: use %s", text, storeMemory)
}

func (v storeValue) String() string { return *v.p }
