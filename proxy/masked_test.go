package proxy

import "testing"

// An answer that is asked for in part may lack its finishReason: its end looked like a
// cut, and a continuation was asked for behind a whole answer. It is the caller's as the
// provider sends it, and the response says that nobody guards it.
func TestAMaskedAnswerPassesUnprotected(t *testing.T) {
	const masked = `data: {"candidates":[{"content":{"parts":[{"text":"all of it"}]}}]}` + "\n\n"
	p := newProvider(t, func(a *asked) { a.stream(); a.chunks(masked); a.end() })
	s := start(t, p, withGemini(p), continues)
	res := dial(t, s.addr).post("/v1beta/models/gemini-x:streamGenerateContent?alt=sse", gemAsk, "x-goog-fieldmask: candidates.content").response()
	if got, err := allOf(res); err != nil || got != masked {
		t.Errorf("%v: %q", err, got)
	}
	if got := res.Header.Get(headerProtection); got != "off; reason="+unprotectedMask {
		t.Errorf("%s: %q", headerProtection, got)
	}
}
