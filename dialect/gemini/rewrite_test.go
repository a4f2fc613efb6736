package gemini

import (
	"bytes"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/turn"
)

// rewrite decodes a later attempt's chunk behind earlier ones of it, lets edit do
// what relay does, and renders it as part of s.
func rewrite(t *testing.T, s *turn.Snapshot, edit func([]turn.Delta), chunk string, earlier ...string) string {
	t.Helper()
	dec := Dialect{}.NewDecoder(request(t))
	units := dialecttest.Units(data(append(earlier, chunk)...))
	var ds []turn.Delta
	for _, u := range units {
		var err error
		if ds, err = dec.Decode(nil, u); err != nil {
			t.Fatal(err)
		}
	}
	for i := range ds {
		if ds[i].Kind == turn.Head {
			ds[i].Kind = turn.Skip
		}
	}
	if edit != nil {
		edit(ds)
	}
	out := string(Dialect{}.Rewrite(nil, request(t), units[len(units)-1], ds, s))
	if out == "" {
		return ""
	}
	data, ended := strings.CutSuffix(out, "\r\n\r\n")
	data, begun := strings.CutPrefix(data, "data: ")
	if !begun || !ended {
		t.Fatalf("not framed like the stream: %q", out)
	}
	return data
}

func skip(kinds ...turn.Kind) func([]turn.Delta) {
	return func(ds []turn.Delta) {
		for i := range ds {
			for _, k := range kinds {
				if ds[i].Kind == k {
					ds[i].Kind = turn.Skip
				}
			}
		}
	}
}

func TestRewrite(t *testing.T) {
	const b = `"modelVersion":"gemini-other","createTime":"now","responseId":"B"}`
	const a = `"modelVersion":"gemini-3-pro","responseId":"A"}`
	for _, c := range []struct {
		name, chunk, want string
		edit              func([]turn.Delta)
	}{
		{"identity is the first attempt's, unknown members survive",
			`{"candidates":[{"content":{"parts":[{"text":"x","later":1}],"role":"model","mood":2},"index":0,"safetyRatings":[{"a":1}]}],"top":[3],` + b,
			`{"candidates":[{"content":{"parts":[{"text":"x","later":1}],"role":"model","mood":2},"index":0,"safetyRatings":[{"a":1}]}],"top":[3],` + a, nil},
		{"text that was cut", `{"candidates":[{"content":{"parts":[{"text":"abc","partMetadata":{"k":1}}]}}],` + b,
			`{"candidates":[{"content":{"parts":[{"text":"c","partMetadata":{"k":1}}]}}],` + a,
			func(ds []turn.Delta) { ds[len(ds)-1].Text = []byte("c") }},
		{"nothing left", `{"candidates":[{"content":{"parts":[{"text":"abc"}]}}],"usageMetadata":{"promptTokenCount":9},` + b, "", skip(turn.Open, turn.Text)},
		{"a thought of another prompt goes, the answer beside it stays", `{"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"x"}]}}],` + b,
			`{"candidates":[{"content":{"parts":[{"text":"x"}]}}],` + a,
			func(ds []turn.Delta) { skip(turn.Open, turn.Text, turn.Close)(ds[:3]) }},
		{"a finish beside text that goes", `{"candidates":[{"content":{"parts":[{"text":"abc"}],"role":"model"},"finishReason":"STOP","finishMessage":"m"}],` + b,
			`{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","finishMessage":"m"}],` + a, skip(turn.Open, turn.Text)},
		{"text beside a finish that goes", `{"candidates":[{"content":{"parts":[{"text":"abc"}]},"finishReason":"STOP","finishMessage":"m"}],` + b,
			`{"candidates":[{"content":{"parts":[{"text":"abc"}]}}],` + a, skip(turn.Finish)},
		{"a call that goes, the empty text beside it", `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}},{"text":""}]},"finishReason":"STOP"}],` + b,
			`{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP"}],` + a, skip(turn.Open, turn.Text, turn.Close)},
		{"a signature on its own", `{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"cw=="}]}}],` + b,
			`{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"cw=="}]}}],` + a, nil},
		{"a signature whose opening went into the open text (relay joins the first text)", `{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"cw=="}]}}],` + b,
			`{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"cw=="}]}}],` + a, skip(turn.Open)},
		{"a signature that the client has", `{"candidates":[{"content":{"parts":[{"text":"ab","thoughtSignature":"cw=="},{"text":"c"}]}}],` + b,
			`{"candidates":[{"content":{"parts":[{"text":"c"}]}}],` + a,
			func(ds []turn.Delta) {
				for i := range ds[:len(ds)-2] {
					if ds[i].Kind != turn.Pulse {
						ds[i].Kind = turn.Skip
					}
				}
			}},
		{"text that the client has under a signature that it has not", `{"candidates":[{"content":{"parts":[{"text":"ab","thoughtSignature":"cw=="}]}}],` + b,
			`{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"cw=="}]}}],` + a, skip(turn.Text)},
		{"grounding stands with its extra", `{"candidates":[{"content":{"parts":[{"text":"x"}]},"groundingMetadata":{"q":1},"citationMetadata":{}}],` + b,
			`{"candidates":[{"content":{"parts":[{"text":"x"}]},"groundingMetadata":{"q":1},"citationMetadata":{}}],` + a, nil},
		{"and goes with it", `{"candidates":[{"content":{"parts":[{"text":"x"}]},"groundingMetadata":{"q":1},"citationMetadata":{}}],` + b,
			`{"candidates":[{"content":{"parts":[{"text":"x"}]},"citationMetadata":{}}],` + a, skip(turn.Extra)},
		{"usage is the whole turn's", `{"candidates":[{"content":{"parts":[{"text":"x"}]}}],"usageMetadata":{"promptTokenCount":20,"toolUsePromptTokenCount":2,"candidatesTokenCount":3,"thoughtsTokenCount":4,"totalTokenCount":29,"serviceTier":"s"},` + b,
			`{"candidates":[{"content":{"parts":[{"text":"x"}]}}],"usageMetadata":{"promptTokenCount":10,"toolUsePromptTokenCount":2,"candidatesTokenCount":13,"thoughtsTokenCount":4,"totalTokenCount":29,"serviceTier":"s"},` + a,
			func(ds []turn.Delta) { u := &ds[len(ds)-1].Usage; u.Input, u.Output = 12, 17 }},
		{"a usage record of its own", `{"usageMetadata":{"promptTokenCount":20},` + b, `{"usageMetadata":{"promptTokenCount":20},` + a, nil},
		{"an error that is null", `{"candidates":[{"content":{"parts":[{"text":"x"}]}}],"error":null,` + b, `{"candidates":[{"content":{"parts":[{"text":"x"}]}}],` + a, nil},
		{"a heartbeat", `{}`, `{}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := rewrite(t, said(t, parts(`{"text":"said"}`)), c.edit, c.chunk); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// An SDK that finds a token resumes with it when the stream breaks once more, from
// the caller's own request: a token that a continuation's response gave would be
// refused, or worse.
func TestALaterAttemptsTokenNeverLeaves(t *testing.T) {
	got := rewrite(t, said(t, parts(`{"text":"said"}`)), nil,
		`{"candidates":[{"content":{"parts":[{"text":"x"}]},"continuationToken":"dDI="}],"responseId":"B"}`)
	if got == "" || strings.Contains(got, "dDI") {
		t.Errorf("got %s", got)
	}
}

func TestAStreamedCallOfALaterAttemptPassesBitByBit(t *testing.T) {
	s := said(t, parts(`{"text":"said"}`))
	chunks := []string{
		`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","willContinue":true}}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.a","numberValue":1}],"willContinue":true}}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"functionCall":{}}]}}]}`,
	}
	for i, c := range chunks {
		if got := rewrite(t, s, nil, c, chunks[:i]...); got != c {
			t.Errorf("%d: got %s", i, got)
		}
	}
}

func TestPulsesBehindTheEndAreNotForwarded(t *testing.T) {
	s := said(t, parts(`{"text":"said"}`))
	fold(t, s, turn.Delta{Kind: turn.Finish, Why: turn.Stopped, Text: []byte("STOP")})
	if got := rewrite(t, s, nil, `{"candidates":[{"content":{"parts":[{"text":""}]}}]}`); got != "" {
		t.Errorf("got %s", got)
	}
}

func TestRewriteOfTheMessagesFirstEventKeepsItsOwnIdentity(t *testing.T) {
	e := dialecttest.Units(data(parts(`{"text":"x"}`)))[0]
	ds, err := Dialect{}.NewDecoder(request(t)).Decode(nil, e)
	if err != nil {
		t.Fatal(err)
	}
	if got := (Dialect{}).Rewrite(nil, request(t), e, ds, &turn.Snapshot{}); !bytes.Equal(got, e.Raw) {
		t.Errorf("got %s", got)
	}
}
