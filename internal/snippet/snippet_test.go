package snippet

import (
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		name, doc string
		want      []Block
		err       string
	}{
		{"a named block", "text\n```go a.go\npackage a\n\nvar x = `y`\n```\n", []Block{{"go", "a.go", "package a\n\nvar x = `y`\n", 2}}, ""},
		{"one without a name", "```sh\nls\n```\n```py b.py\npass\n```\n", []Block{{"py", "b.py", "pass\n", 4}}, ""},
		{"a fence with words inside a block", "```md a\n```go\n```\n", []Block{{"md", "a", "```go\n", 1}}, ""},
		{"two of a name", "```go a\n```\n```go a\n```\n", nil, "line 3: a second block is named a"},
		{"one that is not closed", "\n```go a\npackage a\n", nil, "line 2: the block is not closed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := parse(tc.doc)
			if tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Fatalf("got %v, want %s", err, tc.err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %v %v, want %v", got, err, tc.want)
			}
		})
	}
}

func TestAt(t *testing.T) {
	b := Block{Name: "a.py", Line: 7, Text: `OpenAI(base_url="http://127.0.0.1:8790/v1")`}
	got, err := b.At("http://127.0.0.1:4711")
	if err != nil || got != `OpenAI(base_url="http://127.0.0.1:4711/v1")` {
		t.Errorf("got %s %v", got, err)
	}
	b.Text = "OpenAI()"
	if _, err := b.At("http://127.0.0.1:4711"); err == nil || !strings.Contains(err.Error(), "line 7: a.py") {
		t.Errorf("a block that reaches the real provider: %v", err)
	}
}

func TestExports(t *testing.T) {
	got := Exports("# a comment\nexport A=1\nrun --now\nexport B=http://127.0.0.1:8790/v1   # and why\n")
	if want := []string{"A=1", "B=http://127.0.0.1:8790/v1"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
