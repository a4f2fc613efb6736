package relay_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/internal/golden"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/turn"
)

// TestTranscripts plays testdata/*.txt: inputs, and the effects of each. A command
// stands above ----, its effects below it until a blank line; -rewrite writes them.
//
//	new chat|messages [events] [asked] [recoveries=N]
//	open STATUS [Header: value]
//	feed EVENTS     begin(id) text(id,…) tool(id,call,name) args(id,…) end(id) called(id)
//	                head(id) think(id,…) half fault ping marker no-prefill
//	break eof|reset|short
//	wait DURATION
//	gone
//	stop REASON
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			golden.Compare(t, path, transcribe(t, golden.Read(t, path)))
		})
	}
}

func transcribe(t *testing.T, script []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var h *hand
	skip := false
	for line := range strings.Lines(string(script)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "":
			skip = false
			out.WriteByte('\n')
		case skip:
		case line[0] == '#':
			fmt.Fprintln(&out, line)
		case line == "----":
			skip = true
		default:
			fmt.Fprintf(&out, "%s\n----\n", line)
			verb, rest, _ := strings.Cut(line, " ")
			if verb == "new" {
				h = rehearse(t, rest)
			}
			from := len(h.fx)
			if verb == "new" {
				from = 0
			} else {
				h.act(verb, rest)
			}
			before := out.Len()
			for _, fx := range h.fx[from:] {
				write(&out, fx)
			}
			if out.Len() == before {
				out.WriteString("nothing\n")
			}
		}
	}
	return out.Bytes()
}

func rehearse(t *testing.T, words string) *hand {
	t.Helper()
	w, c := chatWire, relay.Config{}
	ability := prefilling
	for _, word := range strings.Fields(words) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "chat":
		case "messages":
			w = messagesWire
		case "events":
			c.Events = true
		case "asked":
			ability.Manners = []turn.Manner{turn.Asked}
		case "recoveries":
			if _, err := fmt.Sscan(value, &c.Recoveries); err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatalf("unknown option %q", word)
		}
	}
	c.Targets = []relay.Target{{Name: "test", Ability: ability}}
	return run(t, w, c)
}

func (h *hand) act(verb, rest string) {
	h.t.Helper()
	switch verb {
	case "open":
		var status int
		if _, err := fmt.Sscan(rest, &status); err != nil {
			h.t.Fatal(err)
		}
		_, header, _ := strings.Cut(rest, " ")
		name, value, _ := strings.Cut(header, ": ")
		h.open(status, name, value)
	case "feed":
		h.feed(h.w.compose(h.t, rest))
	case "break":
		how := map[string]interrupt.Ending{"eof": interrupt.EOF, "reset": interrupt.Reset, "short": interrupt.Short}
		h.break_(how[rest])
	case "wait":
		d, err := time.ParseDuration(rest)
		if err != nil {
			h.t.Fatal(err)
		}
		h.wait(d)
	case "gone":
		h.step(relay.Gone{})
	case "stop":
		h.step(relay.Stop{Reason: rest})
	default:
		h.t.Fatalf("unknown command %q", verb)
	}
}

// compose reads a list of event words: name(argument,…) or name.
func (w wire) compose(t *testing.T, words string) string {
	t.Helper()
	var out string
	for words = strings.TrimSpace(words); words != ""; words = strings.TrimSpace(words) {
		name, rest := words, ""
		if i := strings.IndexAny(words, "( "); i >= 0 {
			name, rest = words[:i], words[i:]
		}
		var args []string
		if strings.HasPrefix(rest, "(") {
			end := strings.Index(rest, ")")
			if end < 0 {
				t.Fatalf("unclosed %q", words)
			}
			args, rest = strings.SplitN(rest[1:end], ",", 3), rest[end+1:]
		}
		words = rest
		arg := func(i int) string {
			if i < len(args) {
				return args[i]
			}
			return ""
		}
		tail := func(i int) string { return strings.Join(args[min(i, len(args)):], ",") }
		switch name {
		case "begin":
			out += w.begin(arg(0))
		case "head":
			out += map[string]string{"chat": role(arg(0)), "messages": ms(arg(0))}[w.name]
		case "think":
			out += map[string]string{"chat": rc(arg(0), tail(1)), "messages": bThink(0) + kx(0, tail(1))}[w.name]
		case "text":
			out += w.text(arg(0), tail(1))
		case "tool":
			out += w.tool(arg(0), arg(1), arg(2))
		case "args":
			out += w.args(arg(0), tail(1))
		case "end":
			out += w.end(arg(0))
		case "called":
			out += w.called(arg(0))
		case "half":
			out += w.half
		case "fault":
			out += w.fault
		case "ping":
			out += w.ping
		case "marker":
			out += w.marker
		case "no-prefill":
			out += `{"type":"error","error":{"type":"invalid_request_error","message":"This model does not support assistant message prefill."}}`
		default:
			t.Fatalf("unknown event %q", name)
		}
	}
	return out
}

// write prints effects in the order in which they are to be performed.
func write(out *bytes.Buffer, fx relay.Effects) {
	for _, n := range fx.Notes {
		switch n.Kind {
		case relay.NoteInterrupted:
			fmt.Fprintf(out, "interrupted by %v: %v, %s", n.Cause.Kind, n.Plan.Kind, n.Plan.Reason)
			if n.Plan.Wait > 0 {
				fmt.Fprintf(out, ", wait %v", n.Plan.Wait.Round(time.Millisecond))
			}
			out.WriteByte('\n')
		case relay.NoteSeam:
			fmt.Fprintf(out, "seam %s, skipped %d\n", n.Reason, n.Skipped)
		case relay.NoteHealed:
			fmt.Fprintf(out, "healed after %v\n", n.Gap)
		case relay.NoteDemoted:
			fmt.Fprintf(out, "demoted %v\n", n.Manner)
		}
	}
	if p := fx.Persist; len(p.Log) > 0 || p.Durable {
		durable := ""
		if p.Durable {
			durable = ", durable"
		}
		fmt.Fprintf(out, "persist %d bytes at %d%s\n", len(p.Log), p.Offset, durable)
	}
	if h := fx.Head; h != nil {
		kind := "whole"
		if h.Stream {
			kind = "stream"
		}
		fmt.Fprintf(out, "head %d %s\n", h.Status, kind)
	}
	for _, u := range relaytest.Units(fx.Client) {
		for line := range strings.Lines(strings.TrimRight(string(u), "\n")) {
			fmt.Fprintf(out, "  %s\n", strings.TrimRight(line, "\n"))
		}
	}
	if fx.Cancel {
		fmt.Fprintln(out, "cancel")
	}
	if a := fx.Open; a != nil {
		what := "the client's request"
		if a.Derived {
			what = string(a.Body)
		}
		fmt.Fprintf(out, "open %d: %s\n", a.N, what)
	}
	if fx.End != relay.Open {
		fmt.Fprintf(out, "end %s: %s\n", map[relay.End]string{relay.Clean: "clean", relay.Abort: "abort"}[fx.End], relaytest.Result{Notes: fx.Notes}.Outcome())
	}
}
