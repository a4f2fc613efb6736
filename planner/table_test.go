package planner

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/internal/golden"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/turn"
)

// TestTable decides every row of testdata/*.txt. A row is
//
//	facts => plan reason …
//
// and -rewrite writes what stands behind the arrow. Lines that begin with # tell
// why the row is there. A fact that is not named is what it is for an ordinary
// stream that was cut: one choice, prefill, three recoveries, two minutes.
func TestTable(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tables: %v", err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var out bytes.Buffer
			for line := range strings.Lines(string(golden.Read(t, path))) {
				left, _, _ := strings.Cut(strings.TrimRight(line, "\n"), " => ")
				if left == "" || left[0] == '#' {
					out.WriteString(line)
					continue
				}
				f, err := parse(left)
				if err != nil {
					t.Fatalf("%s: %v", left, err)
				}
				fmt.Fprintf(&out, "%s => %s\n", left, show(Decide(f)))
			}
			golden.Compare(t, path, out.Bytes())
		})
	}
}

func show(p Plan) string {
	s := p.Kind.String() + " " + p.Reason
	if p.To != Here {
		s += " to=" + p.To.String()
	}
	if p.Free {
		s += " free"
	}
	if p.Manner != turn.NoManner {
		s += " manner=" + p.Manner.String()
	}
	if p.End != turn.Unfinished {
		s += " end=" + p.End.String()
	}
	if p.Wait != 0 {
		s += " wait=" + p.Wait.String()
	}
	if p.Withdraw {
		s += " withdraw"
	}
	return s
}

// parse reads facts as words: key=value, where value is a comma-separated list.
func parse(line string) (Facts, error) {
	f := Facts{Choices: 1, Manner: turn.Prefill, TokensLeft: -1, Recoveries: 3, WaitLeft: 2 * time.Minute, Jitter: 0.5, MidStream: true}
	for _, word := range strings.Fields(line) {
		key, list, _ := strings.Cut(word, "=")
		for _, v := range strings.Split(list, ",") {
			name, arg, _ := strings.Cut(v, ":")
			if err := f.set(key, name, arg); err != nil {
				return f, fmt.Errorf("%s: %w", word, err)
			}
		}
	}
	return f, nil
}

// manner reads a manner; prefill if it is not named.
func manner(name string) turn.Manner {
	for m := turn.NoManner; m <= turn.Asked; m++ {
		if m.String() == name {
			return m
		}
	}
	return turn.Prefill
}

func (f *Facts) set(key, name, arg string) error {
	n, _ := strconv.Atoi(arg)
	d, _ := time.ParseDuration(arg)
	switch key + "=" + name {
	case "said=nothing", "open=nothing", "seen=nothing":
	case "said=words":
		f.Words = true
	case "said=blank":
	case "said=thinking":
		f.Thinking = true
	case "said=calls":
		f.Complete = n
	case "said=carried":
		f.Carried = true
	case "said=hosted":
		f.HostedSeen = true
	case "said=document":
		f.DocumentDone = true
	case "said=finish":
		f.Finished = true
	case "said=block":
		f.Blocked = arg
	case "open=calls":
		f.Unfinished = n
	case "open=hosted":
		f.HostedOpen, f.HostedSeen = arg, true
	case "seen=all":
		f.Visible = true
	case "seen=arguments":
		f.Visible, f.Arguments = true, true
	case "mode=events":
		f.Events = true
	case "asked=choices":
		f.Choices = n
	case "asked=logprobs":
		f.Logprobs = true
	case "asked=hosted-tools":
		f.HostedTools = true
	case "asked=conversation":
		f.Committed, f.Unsplicable = true, "conversation"
	case "asked=kept":
		f.Kept = true
	case "asked=audio":
		f.Unsplicable = "audio"
	case "can=none", "can=resume", "can=prefill", "can=asked":
		f.Manner = manner(name)
	case "can=next-manner":
		f.MannerOnce, f.Manner = true, turn.Asked
	case "left=recoveries":
		f.Recoveries = n
	case "left=tokens":
		f.TokensLeft = int64(n)
	case "left=wait":
		f.WaitLeft = d
	case "tries=" + name:
		f.Tries, _ = strconv.Atoi(name)
	case "probe=failed":
		f.Probe = true
	case "route=fallback":
		f.Fallback = true
	case "route=next":
		f.Next = Option{true, manner(arg)}
	case "route=larger":
		f.Larger = Option{true, manner(arg)}
	case "cause=overflow":
		f.Cause.ContextOverflow = true
	case "cause=slow":
		f.Cause.Slow = true
	case "cause=lasting":
		f.Cause.Lasting = true
	case "cause=filtered":
		f.Cause.Filtered = true
	case "retries=" + name:
		f.Retries, _ = strconv.Atoi(name)
	case "stream=not-begun":
		f.MidStream = false
	case "cause=retry-after":
		f.Cause.RetryAfter = d
	case "cause=status":
		f.Cause.Status = n
	case "cause=not-sent":
		f.Cause.NotSent = true
	default:
		for k := interrupt.None; key == "cause" && k <= interrupt.Canceled; k++ {
			if k.String() == name {
				f.Cause.Kind = k
				return nil
			}
		}
		return fmt.Errorf("unknown fact %q", name)
	}
	return nil
}
