package faultinject

import (
	"net/http"
	"strings"
)

// Hollow is a 200 that never says anything (FIELD-REPORTS A7).
type Hollow struct {
	What string // one of the keys of hollows
}

// hollows are the bodies.
var hollows = map[string]string{
	"empty":         "",
	"only-comments": ": processing\n\n: processing\n\n",
	"only-done":     "data: [DONE]\n\n",
	"only-blank":    "\n\n\n\n",
	"html":          "<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>\n",
}

// Next implements Fault.
func (f Hollow) Next(p Position, _ []byte) Action {
	if p.Phase != PhaseOpen {
		return Action{}
	}
	kind, body := p.Framing.contentType(), hollows[f.What]
	switch {
	case p.Framing == FrameArray:
		kind = FrameLF.contentType()
	case p.Framing == FrameBinary && f.What == "only-comments":
		body = strings.Repeat(string(p.Framing.comment("processing")), 2)
	}
	if strings.HasPrefix(body, "<") {
		kind = "text/html"
	}
	return Action{Reply: &Reply{Status: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, Body: []byte(body)}}
}

func parseHollow(what string) func(*words) (Fault, error) {
	return func(*words) (Fault, error) { return Hollow{what}, nil }
}
