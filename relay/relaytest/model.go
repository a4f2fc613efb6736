package relaytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/turn"
)

// Seam says how a model behaves when it is asked to continue.
type Seam string

// The behaviours of FIELD-REPORTS D4.
const (
	Honest         Seam = "honest"          // prefill: exactly on; asked: the anchor, then on
	EchoTail       Seam = "echo-tail"       // repeats a good part of the tail
	RestartWhole   Seam = "restart-whole"   // the whole answer again
	Preamble       Seam = "preamble"        // "Sure! Here is the continuation:", then honest
	Diverge        Seam = "diverge"         // something else altogether
	RestartDiverge Seam = "restart-diverge" // the whole answer again, but another one
	Blank          Seam = "blank"           // says nothing
)

// Seams lists all of them.
var Seams = []Seam{Honest, EchoTail, RestartWhole, RestartDiverge, Preamble, Diverge, Blank}

// AnswerOf reads a finished message as an answer of the provider model. Blocks
// that run at the provider are left out: a model asked to go on behind them says
// the rest in text.
func AnswerOf(s *turn.Snapshot) faultinject.Answer {
	var a faultinject.Answer
	for i := range s.Blocks {
		b := &s.Blocks[i]
		text := string(b.Plain())
		switch b.Kind {
		case turn.Prose:
			if n := len(a.Blocks); n > 0 && a.Blocks[n-1].Kind == faultinject.TextBlock {
				a.Blocks[n-1].Text += text
				continue
			}
			a.Blocks = append(a.Blocks, faultinject.Block{Kind: faultinject.TextBlock, Text: text})
		case turn.Reasoning:
			a.Blocks = append(a.Blocks, faultinject.Block{Kind: faultinject.ThinkingBlock, Text: text, Signature: string(b.Signature)})
		case turn.Call:
			a.Blocks = append(a.Blocks, faultinject.Block{Kind: faultinject.ToolBlock, ID: b.ID, Name: b.Name, Args: string(b.Arguments())})
		case turn.Refusal:
			a.Blocks = append(a.Blocks, faultinject.Block{Kind: faultinject.RefusalBlock, Text: text})
		case turn.Redacted, turn.CustomCall, turn.Hosted, turn.HostedResult, turn.Unknown:
		}
	}
	switch e := s.End(); {
	case e.Reason == "stop_sequence":
		a.Finish = faultinject.FinishSequence
	case e.Why == turn.ToolUse:
		a.Finish = faultinject.FinishTool
	case e.Why == turn.Length:
		a.Finish = faultinject.FinishLength
	case e.Why == turn.Filtered:
		a.Finish = faultinject.FinishRefusal
	default:
		a.Finish = faultinject.FinishStop
	}
	return a
}

// Asked reads a continuation request: the assistant text it goes on from, and
// whether a user turn asks for it. It fails when the request is not one.
func Asked(body []byte) (said string, asked bool, err error) {
	var q struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return "", false, fmt.Errorf("continuation is not JSON: %w", err)
	}
	n := len(q.Messages)
	if n >= 2 && q.Messages[n-1].Role == "user" && q.Messages[n-2].Role == "assistant" {
		asked = true
		n--
	}
	if n == 0 || q.Messages[n-1].Role != "assistant" {
		return "", false, fmt.Errorf("continuation holds no partial assistant turn")
	}
	c := q.Messages[n-1].Content
	if len(c) > 0 && c[0] == '"' {
		err = json.Unmarshal(c, &said)
		return said, asked, err
	}
	var parts []struct{ Type, Text string }
	if err := json.Unmarshal(c, &parts); err != nil {
		return "", false, fmt.Errorf("assistant content: %w", err)
	}
	for _, p := range parts {
		if p.Type == "text" {
			said += p.Text
		}
	}
	return said, asked, nil
}

// respaced is said with the white space of text, if that is all they differ in:
// blank blocks cannot be sent back to a strict provider.
func respaced(said, text string) string {
	n := 0
	for _, r := range said {
		if unicode.IsSpace(r) {
			continue
		}
		for n < len(text) {
			t, w := utf8.DecodeRuneInString(text[n:])
			n += w
			if !unicode.IsSpace(t) {
				if t != r {
					return said
				}
				break
			}
		}
	}
	if tail := said[len(strings.TrimRightFunc(said, unicode.IsSpace)):]; strings.HasPrefix(text[n:], tail) {
		n += len(tail)
	}
	return text[:n]
}

// anchorOf is what the last message of a request asks to be repeated: the
// characters it quotes between marks.
func anchorOf(body []byte) string {
	var q struct {
		Messages []struct {
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if json.Unmarshal(body, &q) != nil || len(q.Messages) == 0 {
		return ""
	}
	last := q.Messages[len(q.Messages)-1].Content
	var said string
	if json.Unmarshal(last, &said) != nil {
		var parts []struct{ Text string }
		if json.Unmarshal(last, &parts) != nil {
			return ""
		}
		for _, p := range parts {
			said += p.Text
		}
	}
	for _, marks := range [][2]string{{"<end>", "</end>"}, {"→", "←"}} {
		if _, rest, ok := strings.Cut(said, marks[0]); ok {
			if end := strings.LastIndex(rest, marks[1]); end >= 0 { // the anchor may hold marks of its own
				return rest[:end]
			}
		}
	}
	return ""
}

// midWord reports whether a text was cut inside a word.
func midWord(said, rest string) bool {
	a, _ := utf8.DecodeLastRuneInString(said)
	b, _ := utf8.DecodeRuneInString(rest)
	return (unicode.IsLetter(a) || unicode.IsDigit(a)) && (unicode.IsLetter(b) || unicode.IsDigit(b))
}

// Continue is what a model that meant to say a answers to a continuation request.
// own is the assistant text that the caller itself ended its request with.
func Continue(a faultinject.Answer, body []byte, own string, seam Seam, sentinel string) (faultinject.Answer, error) {
	said, asked, err := Asked(body)
	if err != nil {
		return a, err
	}
	if !strings.HasPrefix(said, own) {
		return a, fmt.Errorf("the continuation request lost the caller's own assistant text %q", own)
	}
	said = said[len(own):]
	rest, ok := faultinject.Rest(a, respaced(said, a.Text()))
	if !ok {
		return a, fmt.Errorf("the continuation request misquotes the answer: %q", said[max(0, len(said)-80):])
	}
	lead := ""
	if asked {
		lead = anchorOf(body)
		if len(rest.Blocks) == 0 {
			lead = sentinel
		}
	}
	front := func(s string) {
		rest.Blocks = append([]faultinject.Block(nil), rest.Blocks...)
		if len(rest.Blocks) > 0 && rest.Blocks[0].Kind == faultinject.TextBlock {
			rest.Blocks[0].Text = s + rest.Blocks[0].Text
			return
		}
		if s != "" {
			rest.Blocks = append([]faultinject.Block{{Kind: faultinject.TextBlock, Text: s}}, rest.Blocks...)
		}
	}
	if asked && lead == "" {
		// Nothing was said that could be repeated or announced.
		seam = Honest
	}
	switch seam {
	case Honest:
		front(lead)
	case EchoTail:
		front(strings.ToValidUTF8(said[max(0, len(said)-120):], ""))
	case RestartWhole:
		if len(strings.Join(strings.Fields(said), "")) < 8 && !asked {
			// Too little to tell a restart from text that repeats itself;
			// splice/doc.go states the bound.
			break
		}
		front(said)
	case Preamble:
		front("Sure! Here is the continuation:\n\n" + lead)
	case RestartDiverge:
		if n := len(strings.Join(strings.Fields(said), "")); n < 40 {
			front(lead)
			break
		}
		rest.Blocks = []faultinject.Block{{Kind: faultinject.TextBlock, Text: strings.ToValidUTF8(said[:len(said)*2/3], "") + " and then all was different, and it went on like that for quite a while."}}
	case Diverge:
		if !midWord(said, rest.Text()) {
			// Behind white space or punctuation a new thought cannot be told
			// from the next one; splice/doc.go states the trade-off.
			front(lead)
			break
		}
		rest.Blocks = []faultinject.Block{{Kind: faultinject.TextBlock, Text: "As an entirely different matter, " + said}}
	case Blank:
		rest.Blocks = nil
	}
	return rest, nil
}

// Renamed is the recording as a second generation would send it: other ids.
func Renamed(units [][]byte) [][]byte {
	out := make([][]byte, len(units))
	for i, u := range units {
		for _, p := range []string{"chatcmpl-", "msg_", "toolu_", "call_"} {
			u = bytes.ReplaceAll(u, []byte(`"`+p), []byte(`"`+p+"again_"))
		}
		u = bytes.ReplaceAll(u, []byte(`"call_again_id"`), []byte(`"call_id"`)) // a member, not an id
		out[i] = u
	}
	return out
}
