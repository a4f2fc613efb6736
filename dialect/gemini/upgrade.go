package gemini

import (
	"strings"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

var _ dialect.Upgrader = Dialect{}

// Upgrade implements dialect.Upgrader: the path asks for the stream. Speech comes in
// pieces of one encoded recording, avgLogprobs is an average over all that was said,
// and arguments that are streamed are told as a stream only.
func (Dialect) Upgrade(r *dialect.Request, body []byte) (stream []byte, why string) {
	switch {
	case r.Logprobs:
		return nil, "logprobs"
	case r.Unsplicable == "responseModalities AUDIO":
		return nil, "audio"
	case r.Unsplicable == "continuationToken":
		return nil, r.Unsplicable
	case streamsArguments(body):
		return nil, "streamFunctionCallArguments"
	}
	return body, ""
}

func streamsArguments(body []byte) (yes bool) {
	w := jsonwalk.Members(body)
	for key, config, ok := w.Next(); ok; key, config, ok = w.Next() {
		if !is(key, "toolConfig") {
			continue
		}
		in := jsonwalk.Members(config)
		for key, calling, ok := in.Next(); ok; key, calling, ok = in.Next() {
			if !is(key, "functionCallingConfig") {
				continue
			}
			c := jsonwalk.Members(calling)
			for key, val, ok := c.Next(); ok; key, val, ok = c.Next() {
				yes = yes || is(key, "streamFunctionCallArguments") && string(val) == "true"
			}
		}
	}
	return yes
}

// StreamPath implements dialect.Upgrader: the method that streams, as events.
func (Dialect) StreamPath(target string) string {
	path, query, _ := strings.Cut(target, "?")
	before, ok := strings.CutSuffix(path, ":generateContent")
	if !ok {
		return target
	}
	var kept []string
	for pair := range strings.SplitSeq(query, "&") {
		if name, _, _ := strings.Cut(pair, "="); pair != "" && name != "alt" && name != "$alt" && name != "%24alt" {
			kept = append(kept, pair)
		}
	}
	return before + ":streamGenerateContent?" + strings.Join(append(kept, "alt=sse"), "&")
}
