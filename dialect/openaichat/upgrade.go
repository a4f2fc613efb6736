package openaichat

import (
	"github.com/unbroken-llm/unbroken/dialect"
)

var _ dialect.Upgrader = Dialect{}

// Upgrade implements dialect.Upgrader. Several choices and log-probabilities come in
// pieces that add up; audio does not (its data is one encoded document, and its
// transcript another), and best_of chooses when all is said.
func (Wire) Upgrade(r *dialect.Request, body []byte) (stream []byte, why string) {
	b, err := OpenBody(body)
	if err != nil {
		return nil, "request"
	}
	switch r.Unsplicable {
	case "audio", "best_of", "use_beam_search", "return_token_ids":
		return nil, r.Unsplicable
	}
	if present(b.Get("stream_options")) {
		return nil, "stream_options" // is for streams: the provider is to say so
	}
	b.Set("stream", []byte("true"))
	b.setUsage()
	return b.Close(), ""
}

// StreamPath implements dialect.Upgrader: the body says it.
func (Wire) StreamPath(path string) string { return path }
