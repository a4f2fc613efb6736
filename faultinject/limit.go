package faultinject

import "strings"

// limit cuts a where a provider stops for max_tokens: after that many tokens
// over all blocks. A call that is cut keeps its incomplete arguments, which is
// what providers send (FIELD-REPORTS A9). Zero or less means no limit.
func limit(a Answer, maxTokens int, seed uint64) Answer {
	if maxTokens <= 0 {
		return a
	}
	left := maxTokens
	for i, k := range a.Blocks {
		part := k.Text
		call := k.Kind == ToolBlock || k.Kind == CustomBlock
		if call {
			part = k.Args
		}
		toks := tokens(part, seed)
		if len(toks) <= left {
			left -= len(toks)
			continue
		}
		out := a
		out.Blocks = append([]Block(nil), a.Blocks[:i]...)
		if part = strings.Join(toks[:left], ""); part != "" {
			if call {
				k.Args = part
			} else {
				k.Text = part
			}
			out.Blocks = append(out.Blocks, k)
		}
		out.Finish = FinishLength
		return out
	}
	return a
}

// stopAt ends a before the first stop sequence its text contains.
func stopAt(a Answer, stops []string) Answer {
	for i, k := range a.Blocks {
		if k.Kind != TextBlock {
			continue
		}
		at, which := -1, ""
		for _, s := range stops {
			if n := strings.Index(k.Text, s); s != "" && n >= 0 && (at < 0 || n < at) {
				at, which = n, s
			}
		}
		if at < 0 {
			continue
		}
		out := a
		out.Blocks = append([]Block(nil), a.Blocks[:i]...)
		if k.Text = k.Text[:at]; k.Text != "" {
			out.Blocks = append(out.Blocks, k)
		}
		out.Finish, out.StopSequence = FinishSequence, which
		return out
	}
	return a
}
