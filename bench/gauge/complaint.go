package gauge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// complaint is an error event, in the server's own words.
type complaint string

func (c complaint) Error() string { return "error event: " + shown(string(c)) }

// refusal is a status that is not 200, in the server's own words, behind hush.
func refusal(res *http.Response, hush func(string) string) error {
	b, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	return fmt.Errorf("status %d: %s", res.StatusCode, shown(hush(words(b))))
}

// shown is text of a server as one short line that no terminal obeys.
func shown(s string) string { return fmt.Sprintf("%.300q", strings.Join(strings.Fields(s), " ")) }

// words are what an error says to people: type and message as OpenAI, Anthropic and those who
// are compatible spell them, {"error":{"type":…,"message":…}}, or what stands in their place.
func words(b []byte) string {
	var e struct {
		Error   json.RawMessage
		Message string
	}
	if json.Unmarshal(b, &e) != nil {
		return string(b)
	}
	var says struct{ Type, Message string }
	var text string
	switch {
	case json.Unmarshal(e.Error, &text) == nil && text != "":
		return text
	case json.Unmarshal(e.Error, &says) == nil && says.Message != "":
		if says.Type != "" {
			return says.Type + ": " + says.Message
		}
		return says.Message
	case e.Message != "":
		return e.Message
	}
	return string(bytes.TrimSpace(b))
}

// counted are faults as lines, in order, each with how often it was met.
func counted(faults map[string]int) (lines []string) {
	for _, why := range slices.Sorted(maps.Keys(faults)) {
		lines = append(lines, fmt.Sprintf("%d × %s", faults[why], why))
	}
	return lines
}
