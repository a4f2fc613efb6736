package proxy

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/aws/smithy-go"

	"github.com/unbroken-llm/unbroken/eventstream"
	"github.com/unbroken-llm/unbroken/internal/bedrocksdk"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/upstream"
)

const (
	claude  = "us.anthropic.claude-3-sonnet-20240229-v1:0" // it takes a prefill
	atModel = "/model/us.anthropic.claude-3-sonnet-20240229-v1%3A0/"
)

// bedrocked serves in front of p as bedrock.
func bedrocked(t *testing.T, p *provider, change ...func(*Config)) *proxied {
	t.Helper()
	own := func(c *Config) { c.Upstreams = append(c.Upstreams, Upstream{Name: "bedrock", URL: p.url()}) }
	return start(t, p, append([]func(*Config){own}, change...)...)
}

// withKey is the SDK of AWS as an application uses it with a Bedrock API key.
func withKey(t *testing.T, at string) *sdk.Client {
	c, done := bedrocksdk.New(at, nil, bedrocksdk.Once)
	t.Cleanup(done)
	return c
}

// frames starts a stream of frames.
func (a *asked) frames(fs ...string) {
	a.say("HTTP/1.1 200 OK\r\nContent-Type: application/vnd.amazon.eventstream\r\nX-Amzn-RequestId: r\r\nTransfer-Encoding: chunked\r\n\r\n")
	a.chunks(fs...)
}

func frame(name, payload string) string {
	return string(eventstream.Append(nil, eventstream.Event, name, []byte(payload)))
}

func exceptional(name string) string {
	return string(eventstream.Append(nil, eventstream.Exception, name, []byte(`{"message":"the provider says so"}`)))
}

func chunkOf(event string) string {
	return frame("chunk", `{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(event))+`"}`)
}

// The pieces of Converse streams.
var (
	cs = frame("messageStart", `{"role":"assistant"}`)
	cm = frame("metadata", `{"usage":{"inputTokens":9,"outputTokens":12,"totalTokens":21},"metrics":{"latencyMs":5}}`)
)

func ct(index int, text string) string {
	return frame("contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":%d,"delta":{"text":%s}}`, index, quote(text)))
}

func cb(index int) string {
	return frame("contentBlockStop", fmt.Sprintf(`{"contentBlockIndex":%d}`, index))
}

func ce(reason string) string { return frame("messageStop", `{"stopReason":"`+reason+`"}`) }

func tu(index int, id string) string {
	return frame("contentBlockStart", fmt.Sprintf(`{"contentBlockIndex":%d,"start":{"toolUse":{"name":"weather","toolUseId":%s}}}`, index, quote(id)))
}

func ti(index int, args string) string {
	return frame("contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":%d,"delta":{"toolUse":{"input":%s}}}`, index, quote(args)))
}

// conversed reads a stream as an application does, one line for all it is told.
func conversed(c *sdk.Client, t *testing.T) (string, error) {
	out, err := c.ConverseStream(t.Context(), &sdk.ConverseStreamInput{
		ModelId:  aws.String(claude),
		Messages: []types.Message{{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: "Say it"}}}},
	})
	if err != nil {
		return "", err
	}
	s := out.GetStream()
	defer s.Close()
	var b strings.Builder
	for e := range s.Events() {
		switch e := e.(type) {
		case *types.ConverseStreamOutputMemberMessageStart:
			b.WriteString("start")
		case *types.ConverseStreamOutputMemberContentBlockStart:
			u := e.Value.Start.(*types.ContentBlockStartMemberToolUse).Value
			fmt.Fprintf(&b, " %d:%s(", *e.Value.ContentBlockIndex, *u.ToolUseId)
		case *types.ConverseStreamOutputMemberContentBlockDelta:
			switch d := e.Value.Delta.(type) {
			case *types.ContentBlockDeltaMemberText:
				b.WriteString(d.Value)
			case *types.ContentBlockDeltaMemberToolUse:
				b.WriteString(*d.Value.Input)
			}
		case *types.ConverseStreamOutputMemberContentBlockStop:
			fmt.Fprintf(&b, " /%d", *e.Value.ContentBlockIndex)
		case *types.ConverseStreamOutputMemberMessageStop:
			b.WriteString(" " + string(e.Value.StopReason))
		case *types.ConverseStreamOutputMemberMetadata:
			b.WriteString(" metadata")
		default:
			fmt.Fprintf(&b, " %T", e)
		}
	}
	return b.String(), s.Err()
}

func TestConverseIsHealedUnderTheSDK(t *testing.T) {
	half := ct(0, "never whole")[:60]
	for _, c := range []struct {
		name          string
		first, second func(*asked)
		want          string
		hits          int
	}{
		{
			"text cut inside a frame",
			func(a *asked) { a.frames(cs, ct(0, "One "), ct(0, "two"), half); a.rst() },
			func(a *asked) { a.frames(cs, ct(0, " three."), cb(0), ce("end_turn"), cm); a.end() },
			"startOne two three. /0 end_turn metadata", 2,
		},
		{
			"a polite end without messageStop",
			func(a *asked) { a.frames(cs, ct(0, "One "), ct(0, "two")); a.end() },
			func(a *asked) { a.frames(cs, ct(0, " three."), cb(0), ce("end_turn"), cm); a.end() },
			"startOne two three. /0 end_turn metadata", 2,
		},
		{
			"an exception in the middle",
			func(a *asked) { a.frames(cs, ct(0, "One "), ct(0, "two"), exceptional("throttlingException")); a.end() },
			func(a *asked) { a.frames(cs, ct(0, " three."), cb(0), ce("end_turn"), cm); a.end() },
			"startOne two three. /0 end_turn metadata", 2,
		},
		{
			"a call cut in its arguments",
			func(a *asked) { a.frames(cs, ct(0, "I look."), cb(0), tu(1, "tooluse_A"), ti(1, `{"city":`)); a.rst() },
			func(a *asked) {
				a.frames(cs, tu(0, "tooluse_B"), ti(0, `{"city":"Kyiv"}`), cb(0), ce("tool_use"), cm)
				a.end()
			},
			`startI look. /0 1:tooluse_B({"city":"Kyiv"} /1 tool_use metadata`, 2,
		},
		{
			"the second of two calls cut",
			func(a *asked) {
				a.frames(cs, tu(0, "tooluse_A"), ti(0, `{"city":"Kyiv"}`), cb(0), tu(1, "tooluse_B"), ti(1, `{"ci`))
				a.rst()
			},
			nil,
			`start 0:tooluse_A({"city":"Kyiv"} /0 tool_use metadata`, 1,
		},
		{
			"only the metadata missing",
			func(a *asked) { a.frames(cs, ct(0, "All."), cb(0), ce("end_turn")); a.rst() },
			nil,
			"startAll. /0 end_turn", 1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProvider(t, c.first, c.second)
			s := bedrocked(t, p)
			got, err := conversed(withKey(t, s.addr), t)
			if err != nil || got != c.want || p.hits() != c.hits {
				t.Fatalf("the SDK read %q, %v, with %d requests; want %q with %d", got, err, p.hits(), c.want, c.hits)
			}
			for _, a := range p.seen {
				if a.path != atModel+"converse-stream" || a.req.Header.Get("Authorization") != "Bearer key" {
					t.Errorf("attempt %d went to %q as %q", a.n, a.path, a.req.Header.Get("Authorization"))
				}
			}
		})
	}
}

func TestConverseFailsAsTheSDKKnowsIt(t *testing.T) {
	p := newProvider(t, func(a *asked) { a.frames(cs, ct(0, "One"), exceptional("validationException")); a.end() })
	s := bedrocked(t, p)
	got, err := conversed(withKey(t, s.addr), t)
	var refused *types.ValidationException
	if !errors.As(err, &refused) || *refused.Message != "the provider says so" || !strings.HasPrefix(got, "startOne") {
		t.Errorf("the provider's final word reads %q, %v", got, err)
	}

	p = newProvider(t, func(a *asked) { a.frames(cs, ct(0, "One")); a.rst() }, func(a *asked) { a.rst() })
	s = bedrocked(t, p, relayed(func(c *relay.Config) { c.Recoveries = 1 }))
	_, err = conversed(withKey(t, s.addr), t)
	var broken *types.ModelStreamErrorException
	if !errors.As(err, &broken) || !strings.Contains(*broken.Message, "not recovered: ") {
		t.Errorf("a turn that was given up reads %v", err)
	}
}

func TestConverseBeforeTheStream(t *testing.T) {
	busy := func(a *asked) { a.answer(503, `{"message":"busy"}`, "Content-Type: application/json") }
	t.Run("a passing status is waited out", func(t *testing.T) {
		p := newProvider(t, busy, func(a *asked) { a.frames(cs, ct(0, "One."), cb(0), ce("end_turn"), cm); a.end() })
		s := bedrocked(t, p)
		if got, err := conversed(withKey(t, s.addr), t); err != nil || got != "startOne. /0 end_turn metadata" {
			t.Errorf("read %q, %v", got, err)
		}
	})
	t.Run("without a stream, too", func(t *testing.T) {
		p := newProvider(t, busy, func(a *asked) {
			a.answer(200, `{"output":{"message":{"role":"assistant","content":[{"text":"One."}]}},"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2},"metrics":{"latencyMs":1}}`, "Content-Type: application/json")
		})
		s := bedrocked(t, p)
		out, err := withKey(t, s.addr).Converse(t.Context(), &sdk.ConverseInput{ModelId: aws.String(claude),
			Messages: []types.Message{{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: "Say it"}}}}})
		if err != nil || out.StopReason != types.StopReasonEndTurn || p.hits() != 2 {
			t.Errorf("%v %v, %d requests", out, err, p.hits())
		}
	})
	t.Run("a refusal is the provider's own", func(t *testing.T) {
		p := newProvider(t, func(a *asked) {
			a.answer(403, `{"message":"no access to the model"}`, "Content-Type: application/json", "X-Amzn-ErrorType: AccessDeniedException")
		})
		s := bedrocked(t, p)
		_, err := conversed(withKey(t, s.addr), t)
		var denied *types.AccessDeniedException
		if !errors.As(err, &denied) || *denied.Message != "no access to the model" || p.hits() != 1 {
			t.Errorf("%v, %d requests", err, p.hits())
		}
	})
	t.Run("a provider that is not there has a type", func(t *testing.T) {
		p := newProvider(t, func(a *asked) { a.rst() })
		s := bedrocked(t, p, relayed(func(c *relay.Config) { c.Recoveries = 1 }))
		_, err := conversed(withKey(t, s.addr), t)
		var api smithy.APIError
		if !errors.As(err, &api) || api.ErrorCode() != "ModelStreamErrorException" {
			t.Errorf("got %v", err)
		}
	})
}

// Silence is bridged by a frame that the SDK hands out as an event of a later year.
func TestConverseHeartbeatIsTolerated(t *testing.T) {
	beat := make(chan struct{})
	p := newProvider(t, func(a *asked) {
		a.frames(cs, ct(0, "One"))
		<-beat
		a.chunks(ct(0, " two."), cb(0), ce("end_turn"), cm)
		a.end()
	})
	s := bedrocked(t, p, relayed(func(c *relay.Config) { c.Heartbeat = 20 * time.Millisecond }))
	out, err := withKey(t, s.addr).ConverseStream(t.Context(), &sdk.ConverseStreamInput{ModelId: aws.String(claude),
		Messages: []types.Message{{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: "Say it"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer out.GetStream().Close()
	text, beats := "", 0
	for e := range out.GetStream().Events() {
		switch e := e.(type) {
		case *types.UnknownUnionMember:
			if beats++; beats == 2 {
				close(beat)
			}
		case *types.ConverseStreamOutputMemberContentBlockDelta:
			text += e.Value.Delta.(*types.ContentBlockDeltaMemberText).Value
		}
	}
	if err := out.GetStream().Err(); err != nil || text != "One two." {
		t.Errorf("read %q, %v", text, err)
	}
}

const invokeAsk = `{"anthropic_version":"bedrock-2023-05-31","max_tokens":100,"messages":[{"role":"user","content":"Say it"}]}`

// invoked reads the chunks of a stream, one a line.
func invoked(c *sdk.Client, t *testing.T, model, body string) (string, error) {
	out, err := c.InvokeModelWithResponseStream(t.Context(), &sdk.InvokeModelWithResponseStreamInput{ModelId: aws.String(model), Body: []byte(body)})
	if err != nil {
		return "", err
	}
	s := out.GetStream()
	defer s.Close()
	var b strings.Builder
	for e := range s.Events() {
		if c, ok := e.(*types.ResponseStreamMemberChunk); ok {
			fmt.Fprintf(&b, "%s\n", c.Value.Bytes)
		} else {
			fmt.Fprintf(&b, "%T\n", e)
		}
	}
	return b.String(), s.Err()
}

// inChunks puts the events of a Messages stream into chunks.
func inChunks(stream string) (out []string) {
	for line := range strings.SplitSeq(stream, "\n") {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			out = append(out, chunkOf(data))
		}
	}
	return out
}

func TestInvokeIsHealedUnderTheSDK(t *testing.T) {
	const tool = `event: content_block_start` + "\n" + `data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_A","name":"weather","input":{}}}` + "\n\n" +
		`event: content_block_delta` + "\n" + `data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"city\":"}}` + "\n\n"
	for _, c := range []struct {
		name string
		end  func(*asked)
		more string
	}{
		{"cut", func(a *asked) { a.rst() }, ""},
		{"an exception", func(a *asked) { a.chunk(exceptional("modelStreamErrorException")); a.end() }, ""},
		{"an error event in a chunk", func(a *asked) {
			a.chunk(chunkOf(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`))
			a.end()
		}, ""},
		{"a call cut", func(a *asked) { a.rst() }, `event: content_block_stop` + "\n" + `data: {"type":"content_block_stop","index":0}` + "\n\n" + tool},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProvider(t,
				func(a *asked) { a.frames(inChunks(ms() + mt("One ") + mt("two") + c.more)...); c.end(a) },
				func(a *asked) { a.frames(inChunks(ms() + mt(" three.") + me())...); a.end() })
			s := bedrocked(t, p)
			got, err := invoked(withKey(t, s.addr+"/u/bedrock"), t, claude, invokeAsk)
			if err != nil || p.hits() != 2 {
				t.Fatalf("%v, %d requests\n%s", err, p.hits(), got)
			}
			for _, once := range []string{"message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop"} {
				if strings.Count(got, `"type":"`+once+`"`) != 1 {
					t.Errorf("%s is not there once:\n%s", once, got)
				}
			}
			if said := text(t, "data: "+strings.ReplaceAll(strings.TrimSpace(got), "\n", "\ndata: ")); said != "One two three." {
				t.Errorf("read %q", said)
			}
			second := p.seen[1]
			if second.path != atModel+"invoke-with-response-stream" || !bytes.Contains(second.body, []byte(`{"role":"assistant","content":[{"type":"text","text":"One two"}]}`)) {
				t.Errorf("the rest was asked for at %s with %s", second.path, second.body)
			}
		})
	}
}

func TestInvokeOfOtherModelsIsRelayed(t *testing.T) {
	nova := chunkOf(`{"contentBlockDelta":{"delta":{"text":"One"},"contentBlockIndex":0}}`)
	p := newProvider(t, func(a *asked) { a.frames(nova); a.end() })
	s := bedrocked(t, p)
	q, _ := http.NewRequest("POST", "http://"+s.addr+"/model/amazon.nova-lite-v1:0/invoke-with-response-stream", strings.NewReader(`{"schemaVersion":"messages-v1","messages":[{"role":"user","content":[{"text":"x"}]}]}`))
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got, err := io.ReadAll(res.Body); err != nil || string(got) != nova {
		t.Errorf("got %q, %v", got, err)
	}
	if why := res.Header.Get(headerProtection); why != "off; reason="+unprotectedModel {
		t.Errorf("%s: %q", headerProtection, why)
	}
	if p.seen[0].path != "/model/amazon.nova-lite-v1:0/invoke-with-response-stream" {
		t.Errorf("path %q", p.seen[0].path)
	}
}

// What a signature covers must arrive as it was signed, and cannot be sent again with another body.
func TestSignedRequestsAreRelayedAsTheyAre(t *testing.T) {
	signing := func(t *testing.T, url string, sent *http.Request) *sdk.Client {
		hc := &http.Client{Transport: seen{sent}}
		return sdk.New(sdk.Options{Region: "us-east-1", BaseEndpoint: aws.String(url), HTTPClient: hc, RetryMaxAttempts: 1,
			Credentials: aws.CredentialsProviderFunc(credentials)})
	}
	t.Run("byte for byte, unprotected", func(t *testing.T) {
		p := newProvider(t, func(a *asked) { a.frames(cs, ct(0, "One")); a.rst() })
		s := bedrocked(t, p)
		var sent http.Request
		got, err := conversed(signing(t, "http://"+s.addr, &sent), t)
		if got != "startOne" || p.hits() != 1 { // that it was cut this SDK does not say (FIELD-REPORTS A1)
			t.Fatalf("a cut stream reads %q, %v, with %d requests", got, err, p.hits())
		}
		a := p.seen[0]
		if a.path != sent.URL.EscapedPath() || a.req.Host != sent.Host && a.req.Host != sent.URL.Host {
			t.Errorf("signed for %s %s, arrived as %s %s", sent.URL.Host, sent.URL.EscapedPath(), a.req.Host, a.path)
		}
		authorization := sent.Header.Get("Authorization")
		_, list, _ := strings.Cut(authorization, "SignedHeaders=")
		list, _, _ = strings.Cut(list, ",")
		for name := range strings.SplitSeq(list+";authorization", ";") {
			if name != "host" && name != "content-length" && a.req.Header.Get(name) != sent.Header.Get(name) {
				t.Errorf("%s is %q, signed was %q", name, a.req.Header.Get(name), sent.Header.Get(name))
			}
		}
		if !strings.HasPrefix(authorization, "AWS4-HMAC-SHA256 ") || !strings.Contains(s.log.String(), unprotectedSigned) {
			t.Errorf("signed as %q, logged %s", authorization, s.log)
		}
	})
	t.Run("a signature in the query", func(t *testing.T) {
		p := newProvider(t, func(a *asked) { a.frames(cs, ct(0, "One"), cb(0), ce("end_turn"), cm); a.end() })
		s := bedrocked(t, p)
		res, err := http.Post("http://"+s.addr+"/model/m/converse-stream?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=ab", "application/json", strings.NewReader(`{"messages":[]}`))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if _, err := io.ReadAll(res.Body); err != nil || res.Header.Get(headerProtection) != "off; reason="+unprotectedSigned {
			t.Errorf("%v, %s: %q", err, headerProtection, res.Header.Get(headerProtection))
		}
	})
	t.Run("the upstream's own key takes its place", func(t *testing.T) {
		p := newProvider(t,
			func(a *asked) { a.frames(cs, ct(0, "One ")); a.rst() },
			func(a *asked) { a.frames(cs, ct(0, "two."), cb(0), ce("end_turn"), cm); a.end() })
		s := start(t, p, func(c *Config) {
			c.Upstreams = append(c.Upstreams, Upstream{Name: "bedrock", URL: p.url(), Credential: upstream.Field{Name: "Authorization", Value: "Bearer own"}})
		})
		var sent http.Request
		got, err := conversed(signing(t, "http://"+s.addr, &sent), t)
		if err != nil || got != "startOne two. /0 end_turn metadata" {
			t.Fatalf("read %q, %v", got, err)
		}
		for _, a := range p.seen {
			if h := a.req.Header; h.Get("Authorization") != "Bearer own" || h.Get("X-Amz-Security-Token") != "" {
				t.Errorf("attempt %d went as %q with token %q", a.n, h.Get("Authorization"), h.Get("X-Amz-Security-Token"))
			}
		}
	})
}

// seen notes the request that it sends.
type seen struct{ sent *http.Request }

func (s seen) RoundTrip(q *http.Request) (*http.Response, error) {
	*s.sent = *q.Clone(q.Context())
	return bedrocksdk.Owning{RoundTripper: http.DefaultTransport}.RoundTrip(q)
}

func credentials(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret", SessionToken: "token"}, nil
}
