package dialecttest

import (
	"fmt"
	"strings"

	"github.com/unbroken-llm/unbroken/turn"
)

// Format prints what matters of a snapshot: blocks, ends and terminal. The head
// and the usage are not part of it, because a spliced message legally differs
// there.
func Format(s *turn.Snapshot) string {
	var b strings.Builder
	for i := range s.Blocks {
		k := &s.Blocks[i]
		fmt.Fprintf(&b, "block %d %s", i, k.Kind)
		if k.Choice != 0 {
			fmt.Fprintf(&b, " choice=%d", k.Choice)
		}
		if k.Index != 0 {
			fmt.Fprintf(&b, " index=%d", k.Index)
		}
		word(&b, "id", k.ID)
		word(&b, "name", k.Name)
		word(&b, "text", string(k.Text))
		word(&b, "signature", string(k.Signature))
		word(&b, "raw", string(k.Raw))
		if k.Extras != 0 {
			fmt.Fprintf(&b, " extras=%d", k.Extras)
		}
		if k.Closed {
			b.WriteString(" closed")
		}
		if k.IsCall() && k.Complete() {
			b.WriteString(" complete")
		}
		b.WriteByte('\n')
	}
	for i, e := range s.Ends {
		fmt.Fprintf(&b, "end %d %s", i, e.Why)
		word(&b, "reason", e.Reason)
		b.WriteByte('\n')
	}
	if s.Terminated {
		b.WriteString("terminated\n")
	}
	if s.Opaques != 0 {
		fmt.Fprintf(&b, "opaques %d\n", s.Opaques)
	}
	return b.String()
}

// FormatUsage prints a usage record.
func FormatUsage(u turn.Usage) string {
	if !u.Known {
		return "usage unknown\n"
	}
	return fmt.Sprintf("usage in=%d out=%d\n", u.Input, u.Output)
}

// FormatDelta prints one delta on one line.
func FormatDelta(d turn.Delta) string {
	var b strings.Builder
	b.WriteString(d.Kind.String())
	switch d.Kind {
	case turn.Open:
		fmt.Fprintf(&b, " %d %s index=%d", d.Block, d.Of, d.Index)
	case turn.Text, turn.Sign, turn.Extra, turn.Close:
		fmt.Fprintf(&b, " %d", d.Block)
	case turn.Finish:
		fmt.Fprintf(&b, " %s", d.Why)
	case turn.Count:
		fmt.Fprintf(&b, " in=%d out=%d", d.Usage.Input, d.Usage.Output)
	case turn.Fault:
		fmt.Fprintf(&b, " type=%q code=%q status=%d message=%q", d.Fault.Type, d.Fault.Code, d.Fault.Status, d.Fault.Message)
	}
	if d.Choice != 0 {
		fmt.Fprintf(&b, " choice=%d", d.Choice)
	}
	word(&b, "id", string(d.ID))
	word(&b, "name", string(d.Name))
	word(&b, "text", string(d.Text))
	return b.String()
}

func word(b *strings.Builder, name, value string) {
	if value != "" {
		fmt.Fprintf(b, " %s=%q", name, value)
	}
}
