package gemini

import (
	"bytes"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/turn"
)

func TestFinishRendersOnlyWhatIsMissing(t *testing.T) {
	d, r := Dialect{}, request(t)
	s := said(t, parts(`{"text":"said"}`))
	if got := d.Finish(nil, r, s, dialect.Ending{Why: turn.Stopped, FinishSent: true, Usage: turn.Usage{Known: true, Input: 1}}); len(got) != 0 {
		t.Errorf("behind a finish: %s", got)
	}
	for why, want := range map[turn.Why]string{turn.Stopped: "STOP", turn.ToolUse: "STOP", turn.Length: "MAX_TOKENS", turn.Filtered: "SAFETY", turn.OtherEnd: "OTHER"} {
		got := d.Finish(nil, r, s, dialect.Ending{Why: why})
		want := `data: {"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"` + want + `","index":0}],"modelVersion":"gemini-3-pro","responseId":"A"}` + "\r\n\r\n"
		if string(got) != want {
			t.Errorf("%s: got %s", why, got)
		}
	}
}

// DESIGN §8: a client that has nothing of a turn gets it from its start.
func TestReplayIsTheTurn(t *testing.T) {
	for _, c := range dialecttest.Golden(t, Dialect{}, "testdata") {
		switch c.Name {
		case "broken", "checkpoints", "two-candidates", "streamed-arguments-cut":
			continue
		}
		r := dialecttest.Parse(t, Dialect{}, c.Request)
		want := dialecttest.Read(t, Dialect{}, r, c.Stream)
		if want.Head == nil || !want.Finished() {
			continue
		}
		stream := Dialect{}.Replay(nil, r, want)
		open := *want
		open.Ends = nil
		stream = Dialect{}.Finish(stream, r, &open, dialect.Ending{Why: want.End().Why, Reason: want.End().Reason, Usage: want.Usage})
		got, exp := plainOf(t, dialecttest.Read(t, Dialect{}, r, stream)), plainOf(t, want)
		if canonicalTurn(got) != canonicalTurn(exp) {
			t.Errorf("%s: replayed as\n%+v\nwant\n%+v", c.Name, got, exp)
		}
	}
}

func TestReplayOfNothingIsAHead(t *testing.T) {
	s := said(t, `{"usageMetadata":{"promptTokenCount":1},"responseId":"A"}`)
	if got := (Dialect{}).Replay(nil, request(t), s); !bytes.Contains(got, []byte(`"responseId":"A"`)) {
		t.Errorf("got %s", got)
	}
}

func TestErrorBody(t *testing.T) {
	for _, c := range []struct {
		f      dialect.Failure
		status int
		want   string
	}{
		{dialect.Failure{}, 502, `{"error":{"code":502,"message":"the provider's stream was interrupted","status":"UNAVAILABLE"}}`},
		{dialect.Failure{Status: 429, Message: "slow"}, 429, `{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"}}`},
		{dialect.Failure{Status: 422}, 422, `{"error":{"code":422,"message":"the provider's stream was interrupted","status":"FAILED_PRECONDITION"}}`},
		{dialect.Failure{Status: 400, Raw: []byte(" {\"error\":{\"code\":400}}\n")}, 400, `{"error":{"code":400}}`},
	} {
		if status, body := (Dialect{}).ErrorBody(c.f); status != c.status || string(body) != c.want {
			t.Errorf("%+v: %d %s", c.f, status, body)
		}
	}
}
