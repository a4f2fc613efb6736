package turn

import "testing"

// DESIGN §3, first edge case: what makes a tool call runnable.
func TestCompleteCalls(t *testing.T) {
	for _, tc := range []struct {
		name         string
		kind         BlockKind
		tool, args   string // args as an escaped body
		open, closed bool   // complete while open; once closed
	}{
		{"object", Call, "f", `{\"a\":1}`, true, true},
		{"object, then blanks", Call, "f", `{\"a\":1} \n`, true, true},
		{"object in blanks (Anthropic pads)", Call, "f", ` \n{\"a\": 1  }`, true, true},
		// D18: a host that gives two parallel calls one index and no id runs their arguments together. Neither may run.
		{"two objects run together", Call, "f", `{\"p\":1}{\"p\":2}`, false, false},
		{"object, then words", Call, "f", `{\"p\":1} and so on`, false, false},
		{"nested object", Call, "f", `{\"a\":{\"b\":[{}]}}`, true, true},
		{"escaped quotes and surrogates", Call, "f", `{\"a\":\"\\\"\ud83d\ude00\"}`, true, true},
		{"braces in a string", Call, "f", `{\"a\":\"}\"}`, true, true},
		{"no arguments", Call, "f", ``, false, true},
		{"placeholder object", Call, "f", `{}`, false, true},
		{"placeholder object with a blank", Call, "f", `{ }`, false, true},
		{"cut in a key", Call, "f", `{\"a`, false, false},
		{"cut in a value (D3)", Call, "f", `{\"path\":\"/a\",\"content\":\"lin`, false, false},
		{"cut before the brace", Call, "f", `{\"a\":1`, false, false},
		{"cut inside a number", Call, "f", `{\"a\":1,\"b\":2`, false, false},
		{"null", Call, "f", `null`, false, false},
		{"number", Call, "f", `12 `, false, false},
		{"string", Call, "f", `\"x\"`, false, false},
		{"true", Call, "f", `true`, false, false},
		{"array", Call, "f", `[{\"a\":1}]`, false, false},
		{"empty array", Call, "f", `[]`, false, false},
		{"not JSON", Call, "f", `{a:1}`, false, false},
		{"two values", Call, "f", `1{\"a\":1}`, false, false},
		{"only blanks", Call, "f", ` `, false, false},
		{"no name", Call, "", `{\"a\":1}`, false, false},
		{"no name, no arguments", Call, "", ``, false, false},
		{"free-form input", CustomCall, "f", `SELECT 1`, false, true},
		{"free-form input that is JSON", CustomCall, "f", `{\"a\":1}`, false, true},
		{"free-form input without a name", CustomCall, "", `x`, false, false},
		{"hosted tool", Hosted, "web_search", `{\"q\":1}`, false, false},
		{"text", Prose, "f", `{\"a\":1}`, false, false},
		{"unknown block", Unknown, "f", `{\"a\":1}`, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			// Whole, one byte of plain JSON at a time, and as one opening event.
			for _, pieces := range [][]string{{tc.args}, split(tc.args)} {
				s := fold(t, open(0, tc.kind, "id", tc.tool))
				for _, p := range pieces {
					if err := s.Fold(text(0, p)); err != nil {
						t.Fatal(err)
					}
				}
				b := &s.Blocks[0]
				if got := b.Complete(); got != tc.open {
					t.Errorf("open, in %d pieces: complete %v", len(pieces), got)
				}
				b.Closed = true
				if got := b.Complete(); got != tc.closed {
					t.Errorf("closed, in %d pieces: complete %v", len(pieces), got)
				}
			}
			whole := open(0, tc.kind, "id", tc.tool)
			whole.Text = []byte(tc.args)
			if got := fold(t, whole).Blocks[0].Complete(); got != tc.open {
				t.Errorf("in its opening event: complete %v", got)
			}
		})
	}
}

// split cuts a body into its characters, never inside an escape.
func split(body string) []string {
	var out []string
	for len(body) > 0 {
		n := 1
		if body[0] == '\\' {
			n = 2
			if body[1] == 'u' {
				n = 6
			}
		}
		out = append(out, body[:n])
		body = body[n:]
	}
	return out
}

// A complete object is never a prefix of a longer one: no beginning of a call's
// arguments is runnable, wherever the cut falls (FIELD-REPORTS D3).
func TestNoBeginningOfACallIsComplete(t *testing.T) {
	whole := split(`{\"path\":\"/a\",\"lines\":[1,{\"x\":null}],\"text\":\"}\ud83d\ude00\\n\"}`)
	s := fold(t, open(0, Call, "id", "write"))
	for i, p := range whole {
		if s.Blocks[0].Complete() {
			t.Fatalf("complete after %d of %d pieces: %s", i, len(whole), s.Blocks[0].Text)
		}
		if err := s.Fold(text(0, p)); err != nil {
			t.Fatal(err)
		}
	}
	if !s.Blocks[0].Complete() {
		t.Error("the whole call is not complete")
	}
}

func TestClosedCallWithoutArgumentsHasAnEmptyObject(t *testing.T) {
	s := fold(t, open(0, Call, "id", "now"), shut(0), open(1, CustomCall, "id", "sh"), shut(1))
	if got := string(s.Blocks[0].Arguments()); got != "{}" {
		t.Errorf("arguments %q", got)
	}
	if got := s.Blocks[1].Arguments(); len(got) != 0 {
		t.Errorf("free-form input %q", got)
	}
}

// FIELD-REPORTS D18: two calls that share a wire index are two blocks.
func TestCallsAreCounted(t *testing.T) {
	s := fold(t,
		Delta{Kind: Open, Block: 0, Of: Call, ID: []byte("a"), Name: []byte("f"), Text: []byte(`{\"p\":1}`)},
		Delta{Kind: Open, Block: 1, Of: Call, ID: []byte("b"), Name: []byte("f"), Text: []byte(`{\"p\":`)},
		open(2, Prose, "", ""), open(3, CustomCall, "c", "g"))
	if complete, unfinished := s.Calls(); complete != 1 || unfinished != 2 {
		t.Errorf("complete %d, unfinished %d", complete, unfinished)
	}
}

func TestWordsAreMoreThanBlanks(t *testing.T) {
	for body, want := range map[string]bool{"": false, " ": false, `\n\t `: false, `\u0020`: false, "a": true, `\n.`: true, `\u00e9`: true} {
		b := Block{Text: []byte(body)}
		if b.HasWords() != want {
			t.Errorf("%q: %v", body, !want)
		}
	}
}
