package bedrock

import (
	"github.com/unbroken-llm/unbroken/eventstream"
	"github.com/unbroken-llm/unbroken/sse"
)

// contentType is the media type of a stream.
const contentType = "application/vnd.amazon.eventstream"

// keepAlive is the name of a heartbeat's frame, an event that no model of the service has. There is no frame that says
// nothing, so one is needed that nobody acts on, and every official SDK is made for events of a later year: botocore and
// the SDK for JavaScript skip them without a word, those for Go, Java and Rust hand them out as a member of unknown name,
// which a switch over the known ones passes by. The dialects' own forms would be worse: an empty delta opens a block, a
// second metadata frame is summed, and a ping inside of a chunk breaks readers that expect message_start first.
const keepAlive = "keepAlive"

// heartbeat appends a sign of life.
func heartbeat(dst []byte) []byte {
	return eventstream.Append(dst, eventstream.Event, keepAlive, []byte("{}"))
}

// event appends a frame of ours.
func event(dst []byte, name string, payload []byte) []byte {
	return eventstream.Append(dst, eventstream.Event, name, payload)
}

// reload appends the frame of e with another payload, its headers unchanged.
func reload(dst []byte, e sse.Event, payload []byte) []byte {
	f, size, err := eventstream.Read(e.Raw, 0)
	if err != nil || size != len(e.Raw) {
		return event(dst, string(e.Name), payload)
	}
	return f.Reload(dst, payload)
}
