package proxy

import "testing"

// @google/genai asks at /v1 from its third major on, where its earlier ones asked at
// /v1beta. Its requests went to OpenAI, with Google's key, and unprotected.
func TestGeminiAtTheRootOfV1(t *testing.T) {
	cut := func(a *asked) {
		a.stream()
		a.chunks("data: " + gemChunk("g1", "Hello, ", "") + "\n\n")
		a.rst()
	}
	rest := func(a *asked) {
		a.stream()
		a.chunks("data: " + gemChunk("g2", "world.", gemStop) + "\n\n")
		a.end()
	}
	listed := func(a *asked) { a.answer(200, `{"models":[]}`) }
	openai, google := newProvider(t), newProvider(t, cut, rest, listed)
	s := start(t, openai, withGemini(google), continues)
	got, err := allOf(dial(t, s.addr).post("/v1/models/gemini-x:streamGenerateContent?alt=sse", gemAsk, "Connection: close").response())
	if want := "data: " + gemChunk("g1", "Hello, ", "") + "\n\ndata: " + gemChunk("g1", "world.", gemStop) + "\n\n"; err != nil || got != want {
		t.Errorf("%v: %q, want %q", err, got, want)
	}
	for range 2 {
		if a := google.next(); a.path != "/v1/models/gemini-x:streamGenerateContent?alt=sse" {
			t.Errorf("asked for %s", a.path)
		}
	}
	if got, err := allOf(dial(t, s.addr).post("/v1/models", "", "x-goog-api-key: k", "Connection: close").response()); err != nil || got != `{"models":[]}` {
		t.Errorf("%v: %q", err, got)
	}
}
