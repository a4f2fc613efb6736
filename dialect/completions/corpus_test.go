package completions

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/sse"
)

// plain is a recording as encoding/json reads it.
func plain(t *testing.T, stream []byte) (text, finish string, out int64) {
	t.Helper()
	for _, line := range strings.Split(string(stream), "\n") {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var c struct {
			Choices []struct {
				Text   string
				Finish string `json:"finish_reason"`
			}
			Usage *struct {
				Out int64 `json:"completion_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatal(err)
		}
		for _, ch := range c.Choices {
			text += ch.Text
			finish += ch.Finish
		}
		if c.Usage != nil {
			out = c.Usage.Out
		}
	}
	return text, finish, out
}

// recorded are the recordings of this wire.
var recorded = []string{"openai-chat/legacy-completions-text.chunks.txt", "openai-compat-other/vllm-completions.sse"}

// load returns a recording; a file of one chunk a line is framed as events.
func load(t *testing.T, name string) []byte {
	t.Helper()
	root := os.Getenv("UNBROKEN_CORPUS")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "corpus")
	}
	if _, err := os.Stat(root); err != nil {
		t.Skip("no corpus of recorded streams: set UNBROKEN_CORPUS")
	}
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(name, ".chunks.txt") {
		return b
	}
	var stream []byte
	for line := range bytes.Lines(b) {
		stream = sse.Append(stream, "", bytes.TrimSpace(line))
	}
	return stream
}

func TestRecordedStreams(t *testing.T) {
	request := []byte(`{"prompt":"a","stream":true,"stream_options":{"include_usage":true}}`)
	var cases []dialecttest.Case
	for _, name := range recorded {
		stream := load(t, name)
		s := dialecttest.Read(t, Dialect{}, dialecttest.Parse(t, Dialect{}, request), stream)
		text, finish, out := plain(t, stream)
		if string(s.Prose()) != text || s.End().Reason != finish || s.Usage.Output != out || s.Opaques != 0 || text == "" {
			t.Errorf("%s reads as %q, %q, %d tokens; want %q, %q, %d", name, s.Prose(), s.End().Reason, s.Usage.Output, text, finish, out)
		}
		cases = append(cases, dialecttest.Case{Name: name, Request: request, Stream: stream})
	}
	dialecttest.Run(t, Dialect{}, cases)
}
