package relaytest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/sse"
)

// RenderResponses returns the stream of a as OpenAI Responses sends it, one element
// per event (WIRE 1.2).
func RenderResponses(a faultinject.Answer, o faultinject.Options) [][]byte {
	s := responses{id: "resp_" + o.ID + strconv.FormatUint(o.Seed, 10), model: o.Model, step: 3 + int(o.Seed%5)}
	s.event("response.created", object{"response": s.response("in_progress", nil, 0)})
	s.event("response.in_progress", object{"response": s.response("in_progress", nil, 0)})
	var output []any
	for _, b := range a.Blocks {
		if item := s.item(len(output), b); item != nil {
			output = append(output, item)
		}
	}
	typ, end := "response.completed", s.response("completed", output, s.tokens)
	if a.Finish == faultinject.FinishLength {
		typ, end["status"], end["incomplete_details"] = "response.incomplete", "incomplete", object{"reason": "max_output_tokens"}
	}
	s.event(typ, object{"response": end})
	return s.events
}

type object map[string]any

type responses struct {
	id, model string
	step      int // runes a delta
	seq       int
	tokens    int
	events    [][]byte
}

func (s *responses) event(typ string, members object) {
	members["type"], members["sequence_number"] = typ, s.seq
	s.seq++
	b, err := json.Marshal(members)
	if err != nil {
		panic("BUG: relaytest: " + err.Error()) // maps of strings and numbers always marshal
	}
	s.events = append(s.events, sse.Append(nil, typ, b))
}

func (s *responses) response(status string, output []any, tokens int) object {
	r := object{"id": s.id, "object": "response", "created_at": 1770853433, "status": status, "model": s.model, "output": output,
		"error": nil, "incomplete_details": nil, "store": false, "usage": nil}
	if output == nil {
		r["output"] = []any{}
	}
	if tokens > 0 {
		r["usage"] = object{"input_tokens": 11, "output_tokens": tokens, "total_tokens": 11 + tokens,
			"input_tokens_details": object{"cached_tokens": 0}, "output_tokens_details": object{"reasoning_tokens": 0}}
	}
	return r
}

// item renders one item from its opening to its end, and returns it whole.
func (s *responses) item(index int, b faultinject.Block) object {
	at := object{"output_index": index}
	with := func(more object) object {
		out := object{}
		for _, o := range []object{at, more} {
			for k, v := range o {
				out[k] = v
			}
		}
		return out
	}
	id := fmt.Sprintf("%s_%d", strings.TrimPrefix(s.id, "resp_"), index)
	open := func(item object) {
		s.event("response.output_item.added", with(object{"item": item}))
	}
	done := func(item object) object {
		s.event("response.output_item.done", with(object{"item": item}))
		return item
	}
	text := func(typ, member, body string, more object) {
		for _, t := range s.split(body) {
			d := with(more)
			d["delta"] = t
			s.event(typ+".delta", d)
		}
		d := with(more)
		d[member] = body
		s.event(typ+".done", d)
	}
	switch b.Kind {
	case faultinject.TextBlock, faultinject.RefusalBlock:
		id = "msg_" + id
		open(object{"id": id, "type": "message", "status": "in_progress", "role": "assistant", "content": []any{}})
		part := func(body string) object {
			if b.Kind == faultinject.RefusalBlock {
				return object{"type": "refusal", "refusal": body}
			}
			return object{"type": "output_text", "text": body, "annotations": []any{}, "logprobs": []any{}}
		}
		place := object{"item_id": id, "content_index": 0}
		s.event("response.content_part.added", with(object{"item_id": id, "content_index": 0, "part": part("")}))
		if b.Kind == faultinject.RefusalBlock {
			text("response.refusal", "refusal", b.Text, place)
		} else {
			text("response.output_text", "text", b.Text, place)
		}
		s.event("response.content_part.done", with(object{"item_id": id, "content_index": 0, "part": part(b.Text)}))
		return done(object{"id": id, "type": "message", "status": "completed", "role": "assistant", "content": []any{part(b.Text)}})
	case faultinject.ThinkingBlock:
		id = "rs_" + id
		open(object{"id": id, "type": "reasoning", "summary": []any{}, "encrypted_content": "PARTIAL"})
		part := object{"type": "summary_text", "text": b.Text}
		s.event("response.reasoning_summary_part.added", with(object{"item_id": id, "summary_index": 0, "part": object{"type": "summary_text", "text": ""}}))
		text("response.reasoning_summary_text", "text", b.Text, object{"item_id": id, "summary_index": 0})
		s.event("response.reasoning_summary_part.done", with(object{"item_id": id, "summary_index": 0, "part": part}))
		return done(object{"id": id, "type": "reasoning", "summary": []any{part}, "encrypted_content": faultinject.Sign(b.Text)})
	case faultinject.ToolBlock:
		id, call := "fc_"+id, b.ID
		if call == "" {
			call = "call_" + id
		}
		item := func(args, status string) object {
			return object{"id": id, "type": "function_call", "status": status, "call_id": call, "name": b.Name, "arguments": args}
		}
		args := b.Args
		if args == "" {
			args = "{}"
		}
		open(item("", "in_progress"))
		text("response.function_call_arguments", "arguments", args, object{"item_id": id})
		return done(item(args, "completed"))
	case faultinject.RedactedBlock:
	}
	return nil
}

// split cuts text into deltas of a few runes.
func (s *responses) split(text string) (out []string) {
	for len(text) > 0 {
		n := 0
		for i := 0; i < s.step && n < len(text); i++ {
			_, w := utf8.DecodeRuneInString(text[n:])
			n += w
		}
		out = append(out, text[:n])
		text = text[n:]
		s.tokens++
	}
	return out
}
