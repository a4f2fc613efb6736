package gauge

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

const (
	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	// stampMark begins a stamp: stampDigits digits, nanoseconds since 1970.
	stampMark   = "@"
	stampDigits = 19
	batch       = 32 // events of one write, when they are not paced
)

func chunk(dst []byte, data string) []byte { return fmt.Appendf(dst, "%x\r\n%s\r\n", len(data), data) }

// outlet is how a stream is written: what is in front of it, around each part, and behind
// it. What is written leaves at once.
type outlet struct {
	io.Writer
	head, last string
	frame      func(dst []byte, data string) []byte
}

// chunked is an outlet on a connection of HTTP/1.1.
func chunked(c io.Writer) outlet { return outlet{c, streamHead, "0\r\n\r\n", chunk} }

// event is a chunk of Chat Completions.
func event(delta, finish string) string {
	return `data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1764400000,"model":"bench","choices":[{"index":0,"delta":` +
		delta + `,"finish_reason":` + finish + "}]}\n\n"
}

// opening is what comes before the text.
func (w Wire) opening() string {
	if w == Messages {
		return `event: message_start` + "\n" +
			`data: {"type":"message_start","message":{"id":"msg_bench","type":"message","role":"assistant","model":"bench","content":[],` +
			`"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}` + "\n\n" +
			`event: content_block_start` + "\n" +
			`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n"
	}
	return event(`{"role":"assistant","content":""}`, "null")
}

// word is one event of text, which needs no escapes.
func (w Wire) word(text string) string {
	if w == Messages {
		return `event: content_block_delta` + "\n" +
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + text + `"}}` + "\n\n"
	}
	return event(`{"content":"`+text+`"}`, "null")
}

// closing are the events behind the text, the terminal last.
func (w Wire) closing() []string {
	if w == Messages {
		return []string{
			"event: content_block_stop\n" + `data: {"type":"content_block_stop","index":0}` + "\n\n" +
				"event: message_delta\n" + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":1}}` + "\n\n",
			"event: message_stop\n" + `data: {"type":"message_stop"}` + "\n\n",
		}
	}
	return []string{event(`{}`, `"stop"`), "data: [DONE]\n\n"}
}

// terminal is found in the last event, and in no other.
func (w Wire) terminal() []byte {
	if w == Messages {
		return []byte(`"message_stop"`)
	}
	return []byte("[DONE]")
}

// textEvent is one framed event, and where in it the digits of its stamp are.
func (w Wire) textEvent(o outlet, size int) (c []byte, stamp int) {
	zero := strings.Repeat("0", stampDigits)
	c = o.frame(nil, w.word(stampMark+zero+" "+strings.Repeat("w", size)))
	return c, bytes.Index(c, []byte(stampMark+zero)) + len(stampMark)
}

// stream answers with a stream.
func (w Wire) stream(o outlet, s Shape) error {
	if _, err := o.Write(o.frame([]byte(o.head), w.opening())); err != nil {
		return err
	}
	one, stamp := w.textEvent(o, s.Bytes)
	n := 1
	if s.Every == 0 {
		n = min(batch, max(s.Events, 1))
		one = bytes.Repeat(one, n)
	}
	next := time.Now()
	for sent := 0; sent < s.Events; sent += n {
		if s.Every > 0 {
			next = next.Add(s.Every)
			time.Sleep(time.Until(next))
		}
		left := min(n, s.Events-sent)
		size := len(one) / n
		now := time.Now().UnixNano()
		for i := range left {
			strconv.AppendInt(one[i*size+stamp:i*size+stamp], now, 10)
		}
		if _, err := o.Write(one[:left*size]); err != nil {
			return err
		}
	}
	var end []byte
	for _, e := range w.closing() {
		end = o.frame(end, e)
	}
	_, err := o.Write(append(end, o.last...))
	return err
}

// whole answers with one JSON document.
func (w Wire) whole(c io.Writer, s Shape) error {
	body := w.document(s)
	_, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	return err
}

// document is the whole answer.
func (w Wire) document(s Shape) string {
	text := strings.Repeat("w", s.Events*s.Bytes)
	body := `{"id":"chatcmpl-bench","object":"chat.completion","created":1764400000,"model":"bench","choices":[{"index":0,` +
		`"message":{"role":"assistant","content":"` + text + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`
	if w == Messages {
		body = `{"id":"msg_bench","type":"message","role":"assistant","model":"bench","content":[{"type":"text","text":"` + text + `"}],` +
			`"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`
	}
	return body
}
