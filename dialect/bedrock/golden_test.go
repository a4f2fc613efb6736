package bedrock

import (
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/eventstream"
)

// framed puts an event of a golden case into its frame; a chunk's data stands there as it is inside.
func framed(dst []byte, name string, data []byte) []byte {
	switch {
	case name == chunk:
		return appendChunk(dst, data)
	case strings.HasSuffix(name, "Exception"):
		return eventstream.Append(dst, eventstream.Exception, name, data)
	}
	return event(dst, name, data)
}

func TestConverse(t *testing.T) {
	dialecttest.Run(t, Converse{}, dialecttest.GoldenIn(t, Converse{}, "testdata/converse", framed))
}

func TestInvoke(t *testing.T) {
	// Only with a name is a frame no chunk.
	frame := func(dst []byte, name string, data []byte) []byte {
		if name == "" {
			name = chunk
		}
		return framed(dst, name, data)
	}
	dialecttest.Run(t, Invoke{}, dialecttest.GoldenIn(t, Invoke{}, "testdata/invoke", frame))
}
