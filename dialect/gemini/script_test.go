package gemini

import (
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/turn"
)

const requestJSON = `{"contents":[{"role":"user","parts":[{"text":"go on"}]}],"generationConfig":{"maxOutputTokens":1000}}`

func request(t testing.TB) *dialect.Request {
	return dialecttest.Parse(t, Dialect{}, []byte(requestJSON))
}

// data frames payloads as Google does.
func data(payloads ...string) []byte {
	var b strings.Builder
	for _, p := range payloads {
		b.WriteString("data: " + p + "\r\n\r\n")
	}
	return []byte(b.String())
}

// parts is a chunk of the first attempt with these parts.
func parts(p string) string {
	return `{"candidates":[{"content":{"parts":[` + p + `],"role":"model"},"index":0}],"modelVersion":"gemini-3-pro","responseId":"A"}`
}

func said(t testing.TB, payloads ...string) *turn.Snapshot {
	t.Helper()
	return dialecttest.Read(t, Dialect{}, request(t), data(payloads...))
}

func fold(t testing.TB, s *turn.Snapshot, ds ...turn.Delta) {
	t.Helper()
	for _, d := range ds {
		if err := s.Fold(d); err != nil {
			t.Fatal(err)
		}
	}
}
