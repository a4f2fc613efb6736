package relay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	aws_bedrock "github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/aws/smithy-go/auth/bearer"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/bedrock"
	"github.com/unbroken-llm/unbroken/eventstream"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

func frameOf(name, payload string) string {
	return string(eventstream.Append(nil, eventstream.Event, name, []byte(payload)))
}

func exception(name string) string {
	return string(eventstream.Append(nil, eventstream.Exception, name, []byte(`{"message":"It did not work out."}`)))
}

var converse = family{
	name:     "converse",
	d:        conversed{},
	fallback: `{"messages":[{"role":"user","content":[{"text":"go on"}]}]}`,
	folders:  []string{"bedrock"},
	half:     frameOf("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"half"}}`)[:70],
	fault:    exception("throttlingException"),
	marker:   frameOf("metadata", `{"metrics":{"latencyMs":1}}`),
	ping:     frameOf("keepAlive", `{}`),
	render:   relaytest.RenderConverse,
	read:     readConverse,
	skip:     map[string]string{"bedrock/invoke-anthropic-stream.eventstream.bin": "the model's own wire"},
}

var invoke = family{
	name:     "invoke",
	d:        bedrock.Invoke{},
	fallback: `{"anthropic_version":"bedrock-2023-05-31","max_tokens":1000,"messages":[{"role":"user","content":"go on"}]}`,
	folders:  []string{"bedrock"},
	half:     string(relaytest.Chunk([]byte(`{"type":"content_block_delta","index":0}`))[:90]),
	fault:    exception("throttlingException"),
	marker:   string(relaytest.Chunk([]byte(`{"type":"message_stop"}`))),
	ping:     frameOf("keepAlive", `{}`),
	render:   relaytest.RenderInvoke,
	read:     readInvoke,
	skip: map[string]string{
		"bedrock/converse-thinking.eventstream.bin":  "Converse",
		"bedrock/converse-tools.eventstream.bin":     "Converse",
		"bedrock/guardrail-converse.eventstream.bin": "Converse",
	},
}

// conversed hands the provider model a continuation as the messages it reads.
type conversed struct{ bedrock.Converse }

func (d conversed) Continue(r *dialect.Request, said *turn.Snapshot, c dialect.Continuation) ([]byte, error) {
	body, err := d.Converse.Continue(r, said, c)
	if err != nil {
		return nil, err
	}
	return relaytest.ConverseMessages(body)
}

// cannedFrames answers a request with the stream in its context.
type cannedFrames struct{}

func (cannedFrames) Do(q *http.Request) (*http.Response, error) {
	stream, _ := q.Context().Value(cannedFrames{}).([]byte)
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {"application/vnd.amazon.eventstream"}},
		Body: io.NopCloser(bytes.NewReader(stream)), Request: q,
	}, nil
}

// bedrockClient is one for each stream: the SDK encodes events that it does not know with
// an encoder that a client's streams share, which is no more than one may use at a time.
func bedrockClient() *aws_bedrock.Client {
	return aws_bedrock.New(aws_bedrock.Options{
		Region: "us-east-1", HTTPClient: cannedFrames{}, RetryMaxAttempts: 1,
		BearerAuthTokenProvider: bearer.StaticTokenProvider{Token: bearer.Token{Value: "k"}},
		AuthSchemePreference:    []string{"httpBearerAuth"},
	})
}

// readConverse is the AWS SDK for Go over a stream. It accumulates nothing.
func readConverse(stream []byte) (message, error) {
	ctx := context.WithValue(context.Background(), cannedFrames{}, stream)
	out, err := bedrockClient().ConverseStream(ctx, &aws_bedrock.ConverseStreamInput{ModelId: aws.String("m")})
	if err != nil {
		return message{}, err
	}
	s := out.GetStream()
	defer func() { _ = s.Close() }()
	acc := conversing{blocks: map[int32]*conversedBlock{}}
	for e := range s.Events() {
		if err := acc.take(e); err != nil {
			return message{}, err
		}
	}
	if err := s.Err(); err != nil {
		return message{}, err
	}
	return acc.message()
}

type conversedBlock struct {
	kind, text, name, id, signature string
	closed                          bool
}

// conversing puts events together, and complains of what a strict application would.
type conversing struct {
	begun, usage bool
	stop         types.StopReason
	order        []int32
	blocks       map[int32]*conversedBlock
}

func (a *conversing) take(e types.ConverseStreamOutput) error {
	if a.stop != "" {
		if _, ok := e.(*types.ConverseStreamOutputMemberMetadata); !ok {
			return fmt.Errorf("%T behind messageStop", e)
		}
	}
	switch e := e.(type) {
	case *types.ConverseStreamOutputMemberMessageStart:
		if a.begun {
			return fmt.Errorf("second messageStart")
		}
		a.begun = true
	case *types.ConverseStreamOutputMemberContentBlockStart:
		b, err := a.block(*e.Value.ContentBlockIndex, "tool_use", true)
		if err != nil {
			return err
		}
		if tool, ok := e.Value.Start.(*types.ContentBlockStartMemberToolUse); ok {
			b.name, b.id = *tool.Value.Name, *tool.Value.ToolUseId
		}
	case *types.ConverseStreamOutputMemberContentBlockDelta:
		return a.delta(*e.Value.ContentBlockIndex, e.Value.Delta)
	case *types.ConverseStreamOutputMemberContentBlockStop:
		b := a.blocks[*e.Value.ContentBlockIndex]
		if b == nil || b.closed {
			return fmt.Errorf("block %d is closed, and is not open", *e.Value.ContentBlockIndex)
		}
		b.closed = true
	case *types.ConverseStreamOutputMemberMessageStop:
		a.stop = e.Value.StopReason
	case *types.ConverseStreamOutputMemberMetadata:
		if a.usage {
			return fmt.Errorf("second metadata")
		}
		if u := e.Value.Usage; u != nil && *u.TotalTokens != *u.InputTokens+*u.OutputTokens {
			return fmt.Errorf("usage does not add up: %d and %d are %d", *u.InputTokens, *u.OutputTokens, *u.TotalTokens)
		}
		a.usage = true
	case *types.UnknownUnionMember:
		if e.Tag != "keepAlive" {
			return fmt.Errorf("unknown event %s", e.Tag)
		}
	}
	return nil
}

func (a *conversing) block(index int32, kind string, start bool) (*conversedBlock, error) {
	b := a.blocks[index]
	switch {
	case !a.begun:
		return nil, fmt.Errorf("block %d before messageStart", index)
	case b == nil:
		if int(index) != len(a.order) {
			return nil, fmt.Errorf("block %d is number %d", index, len(a.order))
		}
		b = &conversedBlock{kind: kind}
		a.blocks[index], a.order = b, append(a.order, index)
	case start || b.closed:
		return nil, fmt.Errorf("block %d goes on when it is closed, or starts again", index)
	}
	return b, nil
}

func (a *conversing) delta(index int32, d types.ContentBlockDelta) error {
	kind, text, signature := "", "", ""
	switch d := d.(type) {
	case *types.ContentBlockDeltaMemberText:
		kind, text = "text", d.Value
	case *types.ContentBlockDeltaMemberToolUse:
		kind, text = "tool_use", *d.Value.Input
	case *types.ContentBlockDeltaMemberReasoningContent:
		kind = "reasoning"
		switch r := d.Value.(type) {
		case *types.ReasoningContentBlockDeltaMemberText:
			text = r.Value
		case *types.ReasoningContentBlockDeltaMemberSignature:
			signature = r.Value
		}
	}
	b, err := a.block(index, kind, false)
	if err != nil {
		return err
	}
	if b.kind != kind || kind == "tool_use" && b.name == "" {
		return fmt.Errorf("a delta of %s in the %s block %d %q", kind, b.kind, index, b.name)
	}
	b.text, b.signature = b.text+text, b.signature+signature
	return nil
}

func (a *conversing) message() (message, error) {
	if a.stop == "" {
		return message{}, fmt.Errorf("no messageStop")
	}
	m := message{finish: string(a.stop)}
	var order []string
	for _, i := range a.order {
		b := a.blocks[i]
		if !b.closed {
			return message{}, fmt.Errorf("block %d has no end", i)
		}
		switch b.kind {
		case "reasoning":
			if b.text != "" && b.signature == "" {
				return message{}, fmt.Errorf("reasoning without a signature")
			}
			continue
		case "text":
			m.text += b.text
			if n := len(order); n > 0 && order[n-1] == "text" || b.text == "" {
				continue
			}
		case "tool_use":
			if b.text == "" {
				b.text = "{}"
			}
			if !json.Valid([]byte(b.text)) {
				return message{}, fmt.Errorf("tool %s has cut arguments %q", b.name, b.text)
			}
			m.calls = append(m.calls, b.name+compact(b.text))
		}
		order = append(order, b.kind)
	}
	m.order = strings.Join(order, ",")
	return m, nil
}

// readInvoke is the AWS SDK for Go over a stream, and the SDK of Anthropic over what it hands out.
func readInvoke(stream []byte) (message, error) {
	ctx := context.WithValue(context.Background(), cannedFrames{}, stream)
	out, err := bedrockClient().InvokeModelWithResponseStream(ctx, &aws_bedrock.InvokeModelWithResponseStreamInput{ModelId: aws.String("m"), Body: []byte("{}")})
	if err != nil {
		return message{}, err
	}
	s := out.GetStream()
	defer func() { _ = s.Close() }()
	var events []byte
	for e := range s.Events() {
		if c, ok := e.(*types.ResponseStreamMemberChunk); ok {
			events = sse.Append(events, messages.named(c.Value.Bytes), c.Value.Bytes)
		} else if u, ok := e.(*types.UnknownUnionMember); !ok || u.Tag != "keepAlive" {
			return message{}, fmt.Errorf("unknown event %T", e)
		}
	}
	if err := s.Err(); err != nil {
		return message{}, err
	}
	// The accumulator takes a second stop for nothing.
	if starts, stops := bytes.Count(events, []byte("event: content_block_start\n")), bytes.Count(events, []byte("event: content_block_stop\n")); starts < stops {
		return message{}, fmt.Errorf("%d blocks begin, %d end", starts, stops)
	}
	return readMessages(events)
}

func TestCutEverywhereConverse(t *testing.T) {
	var others, twice []relaytest.Recording
	for _, r := range relaytest.Recordings(t, converse.fallback, nil, converse.folders...) {
		if r.Name == "bedrock/guardrail-converse.eventstream.bin" {
			twice = append(twice, r)
		} else {
			others = append(others, r)
		}
	}
	converse.cutEverywhere(t, others)
	// Its text says the same sentence twice, and may say it a third time: that an answer starts over cannot be told
	// from that (splice/doc.go, the trade-off).
	honest := converse
	honest.name, honest.table, honest.targets = "converse, said twice", converse.name, []target{
		{targets[0].name, targets[0].ability, []relaytest.Seam{relaytest.Honest}},
		{targets[2].name, targets[2].ability, []relaytest.Seam{relaytest.Honest}},
	}
	honest.cutEverywhere(t, twice)
}

func TestCutEverywhereInvoke(t *testing.T) {
	invoke.cutEverywhere(t, relaytest.Recordings(t, invoke.fallback, nil, invoke.folders...))
}

// With no interruption the frames pass byte for byte, however they were read.
func TestFramesPassByteForByte(t *testing.T) {
	for _, f := range []family{converse, invoke} {
		recs := composed(f)
		if relaytest.Corpus() != "" {
			recs = append(recs, relaytest.Recordings(t, f.fallback, nil, f.folders...)...)
		}
		for _, r := range recs {
			if f.skip[r.Name] != "" {
				continue
			}
			stream := r.Stream()
			for _, size := range []int{1, 7, 4096} {
				w := relaytest.World{Dialect: f.d, Config: relay.Config{Targets: []relay.Target{{}}}}
				res, err := w.Run(r.Request, func(q relaytest.Request) relaytest.Reply {
					var reply relaytest.Reply
					for b := stream; len(b) > 0; b = b[min(size, len(b)):] {
						reply.Chunks = append(reply.Chunks, b[:min(size, len(b))])
					}
					return reply
				})
				if err != nil || res.Broken != "" || res.End != relay.Clean || len(res.Requests) != 1 || !bytes.Equal(res.Body, stream) {
					t.Fatalf("%s by %d: %v %s, ended %v as %s, %d requests, %d of %d bytes", r.Name, size, err, res.Broken, res.End, res.Outcome(), len(res.Requests), len(res.Body), len(stream))
				}
				if got := res.Head.ContentType; got != "application/vnd.amazon.eventstream" {
					t.Errorf("content type %q", got)
				}
			}
		}
	}
}

// A character that some readers of event streams take for a line end stands in frames as it came: to spell it out, as
// relay does in events of its own, would break the frame's length and checksum, where the same bytes are by chance, too.
func TestFramesKeepLineSeparators(t *testing.T) {
	w := relaytest.World{Dialect: bedrock.Converse{}, Config: relay.Config{Targets: []relay.Target{{Ability: targets[0].ability}}}}
	res, err := w.Run([]byte(converse.fallback), func(q relaytest.Request) relaytest.Reply {
		start, text := frameOf("messageStart", `{"role":"assistant"}`), func(s string) string {
			return frameOf("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"`+s+`"}}`)
		}
		if q.N == 1 {
			return relaytest.Reply{Chunks: [][]byte{[]byte(start + text("One "))}}
		}
		return relaytest.Reply{Chunks: [][]byte{[]byte(start + text("two\u2028three") +
			frameOf("contentBlockStop", `{"contentBlockIndex":0}`) + frameOf("messageStop", `{"stopReason":"end_turn"}`))}}
	})
	if err != nil || res.Broken != "" || res.End != relay.Clean {
		t.Fatalf("%v %s, ended %v as %s", err, res.Broken, res.End, res.Outcome())
	}
	if m, err := readConverse(res.Body); err != nil || m.text != "One two\u2028three" {
		t.Errorf("read %q, %v", m.text, err)
	}
}

// Another process, or a second connection, carries a turn of frames on, wherever the first one was lost.
func TestFramesAreCarriedOnByAnother(t *testing.T) {
	for _, f := range []family{converse, invoke} {
		recs := composed(f)
		if relaytest.Corpus() != "" {
			recs = append(recs, relaytest.Recordings(t, f.fallback, nil, f.folders...)...)
		}
		t.Run(f.name+" killed", func(t *testing.T) { f.killedEverywhere(t, relaytest.World.Resume, recs) })
		t.Run(f.name+" followed", func(t *testing.T) { f.killedEverywhere(t, followed, recs) })
	}
}
