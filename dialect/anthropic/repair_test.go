package anthropic_test

import (
	"encoding/json"
	"strings"
	"testing"
)

func marshal(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRepair(t *testing.T) {
	const (
		gone = `{"type":"thinking","thinking":"x","signature":"ub1.drop"}`
		glue = ` { "signature" : "YWJjub1.drop", "thinking":"y", "type":"thinking" } `
		real = `{"type":"thinking","thinking":"about ub1.drop","signature":"c2ln"}`
		text = `{"type": "text", "text":"signature ub1.drop"}`
		user = `{"role":"user","content":"ub1.drop"}`
	)
	body := func(messages string) string { return `{"model":"m", "messages": [` + messages + `] ,"max_tokens":5}` }
	said := func(blocks string) string { return `{"role": "assistant", "content":[` + blocks + `]}` }
	for _, tt := range []struct{ name, was, want string }{
		{"no mark", body(`{"role":"user","content":"Q"}`), ""},
		{"the mark is only talked about", body(user + "," + said(real+","+text)), ""},
		{"a user's own block is not ours", body(`{"role":"user","content":[` + gone + `]}`), ""},
		{"first of several", body(user + ",\n" + said(gone+" , "+real+","+text)), body(user + ",\n" + said(real+","+text))},
		{"in the middle", body(user + "," + said(real+","+gone+" ,"+text)), body(user + "," + said(real+" ,"+text))},
		{"last", body(user + "," + said(text+"\n,"+gone)), body(user + "," + said(text))},
		{"several in a row, one glued to provider bytes", body(user + "," + said(gone+","+glue+","+text+","+gone)), body(user + "," + said(text))},
		{"in every message", body(user + "," + said(gone+","+text) + "," + user + "," + said(text+","+gone)), body(user + "," + said(text) + "," + user + "," + said(text))},
		{"a message of nothing else goes, its neighbours join", body(user + "," + said(gone+","+glue) + " ," + user), body(user + " ," + user)},
		{"the last message goes", body(user + "," + said(gone)), body(user)},
		{"not json at all", `ub1.drop`, ""},
		{"content that is a string", body(`{"role":"assistant","content":"ub1.drop"}`), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := []byte(tt.was)
			out := d.Repair(in)
			if tt.want == "" {
				if &out[0] != &in[0] || len(out) != len(in) {
					t.Errorf("a body without marks was copied to %s", out)
				}
				return
			}
			if string(out) != tt.want {
				t.Errorf("got  %s\nwant %s", out, tt.want)
			}
			if string(in) != tt.was {
				t.Error("the caller's bytes were written to")
			}
			if again := d.Repair(out); string(again) != tt.want {
				t.Errorf("repairing twice is not repairing once: %s", again)
			}
			if !json.Valid(out) || strings.Contains(string(out), `"signature":"ub1.drop"`) {
				t.Errorf("%s", out)
			}
		})
	}
}
