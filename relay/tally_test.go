package relay

import (
	"testing"

	"github.com/unbroken-llm/unbroken/turn"
)

// A record is kept until the turn ends, the bytes that it came in are not: a buffer
// that was read into again put another attempt's head into the usage of an upgraded
// Gemini call.
func TestRecordsOutliveTheirBuffer(t *testing.T) {
	const record = `{"promptTokenCount":7}`
	buffer := []byte(record)
	var all tally
	all.count(turn.Usage{Known: true, Input: 7, Raw: buffer})
	copy(buffer, "HTTP/1.1 200 OK and so on")
	if got := string(all.final(true, 0, 0).Raw); got != record {
		t.Errorf("the record says %s", got)
	}
}
