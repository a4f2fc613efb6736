package faultinject

import "encoding/json"

// usage fills what the answer leaves open: Out counts the tokens emitted.
func (a Answer) usage(o Options) Usage {
	u := a.Usage
	if u.In == 0 {
		u.In = 1
	}
	if u.Out == 0 {
		u.Out = max(1, a.tokens(o.Seed))
	}
	if u.Reasoning == 0 {
		for _, k := range a.Blocks {
			if k.Kind == ThinkingBlock {
				u.Reasoning += len(tokens(k.Text, o.Seed))
			}
		}
	}
	return u
}

// tokens counts the tokens of the whole answer.
func (a Answer) tokens(seed uint64) int {
	n := 0
	for _, k := range a.Blocks {
		if k.Kind == ToolBlock || k.Kind == CustomBlock {
			n += len(tokens(k.Name, seed)) + len(tokens(k.Args, seed))
			continue
		}
		n += len(tokens(k.Text, seed))
	}
	return n
}

// unquote is the inverse of quote; half a surrogate pair becomes U+FFFD.
func unquote(quoted string) string {
	var s string
	if err := json.Unmarshal([]byte(quoted), &s); err != nil {
		panic("BUG: not a JSON string: " + quoted)
	}
	return s
}
