package faultinject

import (
	"bytes"
	"net/http"
	"strings"
)

// geminiSpeaker plays Gemini's generateContent, of the Gemini API and of Vertex.
type geminiSpeaker struct{}

func (geminiSpeaker) dialect() Dialect { return Gemini }
func (geminiSpeaker) traits() traits {
	return traits{oneEnd: true, framing: Options.framing, tune: geminiTune, ping: geminiPing}
}

func (geminiSpeaker) serves(method, path string) bool {
	call, ok := readGeminiPath(path)
	return ok && method == http.MethodPost && call.generates()
}

func (geminiSpeaker) prompt(_ *Server, in received) (Prompt, error) {
	call, _ := readGeminiPath(in.path)
	return readGemini(call, in.body)
}

func (sp geminiSpeaker) check(s *Server, in received) *Refusal {
	call, _ := readGeminiPath(in.path)
	r := checkGemini(in.header, in.path, call, in.body)
	if r == nil {
		r = sp.checkToken(s, in)
	}
	if r != nil {
		r.Array = call.array
	}
	return r
}

// checkToken wants the token of a request to be one that an earlier answer to the
// same request issued.
func (sp geminiSpeaker) checkToken(s *Server, in received) *Refusal {
	req, r := decodeGemini(in.body)
	if r != nil {
		return r
	}
	if req.ContinuationToken == "" {
		return nil
	}
	p, err := sp.prompt(s, in)
	if err != nil {
		return checkToken(req.ContinuationToken, "")
	}
	_, _, base := mannerOf(p, sp.prefills(s.cfg.Host, p))
	key, _ := turnKey(in.header.Get(HeaderTurn), base)
	return checkToken(req.ContinuationToken, key)
}

func (geminiSpeaker) prefills(_ Host, p Prompt) bool     { return geminiPrefills(modelName(p.Model)) }
func (geminiSpeaker) events(a Answer, o Options) []Event { return geminiEvents(a, o) }
func (geminiSpeaker) whole(a Answer, o Options) []byte   { return geminiWhole(a, o) }

// refuse: a stream that is one JSON array is so when it fails, too.
func (geminiSpeaker) refuse(r *Refusal, _ string) []byte {
	body := prettyError(r)
	if r.Array {
		return append(append([]byte("["), bytes.TrimSuffix(body, []byte("\n"))...), "\n]\n"...)
	}
	return body
}

func (geminiSpeaker) failure(k errorKind) *Refusal { return googleFailure(k) }

// inBand is an error in a data frame, an element of the array, or, as shape
// "raw", the body of an error where an event should be (WIRE 1.4).
func (geminiSpeaker) inBand(f InBand, k errorKind, p Position, _ []byte) []byte {
	r := googleFailure(k)
	if f.Shape == "raw" {
		return prettyError(r)
	}
	first := p.Event == 0 || p.Event == 1 && f.At.Side == Before
	b := p.Framing.event("", googleError(r), first)
	if p.Framing == FrameArray {
		b = append(b, arrayEnd...)
	}
	return b
}

// geminiPing is a chunk that only counts: Gemini has no sign of life of its own,
// and this is what its readers take (WIRE 3.5).
func geminiPing(chunk []byte, _ int) []byte {
	const payload = `{"usageMetadata": {"promptTokenCount": 1,"totalTokenCount": 1}}`
	if len(chunk) == 0 {
		return FrameCRLF.event("", payload, false)
	}
	return framingOf(chunk).event("", payload, false)
}

// geminiTune: models of version 4 decode long enough to need continuation
// tokens. A continuation that was asked for has none, since nobody could say
// what of its text belongs to the turn.
func geminiTune(o *Options, p Prompt, t task) {
	o.Array, o.StreamArgs = p.Array, p.StreamArgs
	long := o.Variant.Checkpoints || o.Variant.Pauses || strings.Contains(modelName(p.Model), "gemini-4")
	if long && (t.c.Manner == Fresh || t.c.Manner == Resumed) {
		o.Checkpoint, o.Said = t.key, len(t.c.Said)
	}
}
