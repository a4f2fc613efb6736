package openairesponses_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// script composes a response's events, each numbered.
type script struct {
	id  string
	n   int
	out []byte
}

func begin(id string) *script {
	s := &script{id: id}
	return s.event("response.created", fmt.Sprintf(`"response":{"id":%q,"object":"response","created_at":1,"status":"in_progress","model":"gpt-5","output":[],"store":true,"usage":null,"echo":%q}`, id, id))
}

func (s *script) event(typ, members string) *script {
	s.out = sse.Append(s.out, typ, fmt.Appendf(nil, `{"type":%q,"sequence_number":%d,%s}`, typ, s.n, members))
	s.n++
	return s
}

func (s *script) item(at int, item string) *script {
	return s.event("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":%s`, at, item))
}

func (s *script) ends(at int, item string) *script {
	return s.event("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, at, item))
}

// message opens a message with one part and says some of it.
func (s *script) message(at int, id string, deltas ...string) *script {
	s.item(at, fmt.Sprintf(`{"id":%q,"type":"message","status":"in_progress","content":[],"role":"assistant","phase":"final_answer"}`, id))
	s.event("response.content_part.added", fmt.Sprintf(`"item_id":%q,"output_index":%d,"content_index":0,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}`, id, at))
	return s.says(at, id, deltas...)
}

func (s *script) says(at int, id string, deltas ...string) *script {
	for _, t := range deltas {
		s.event("response.output_text.delta", fmt.Sprintf(`"item_id":%q,"output_index":%d,"content_index":0,"delta":%s,"logprobs":[]`, id, at, quote(t)))
	}
	return s
}

func (s *script) cites(at int, id string, n, from, to int) *script {
	return s.event("response.output_text.annotation.added", fmt.Sprintf(`"item_id":%q,"output_index":%d,"content_index":0,"annotation_index":%d,"annotation":%s`, id, at, n, citation(from, to)))
}

func citation(from, to int) string {
	return fmt.Sprintf(`{"type":"url_citation","start_index":%d,"end_index":%d,"url":"u"}`, from, to)
}

// closes ends a message of one part.
func (s *script) closes(at int, id, all string, annotations ...string) *script {
	part := fmt.Sprintf(`{"type":"output_text","annotations":[%s],"logprobs":[],"text":%s}`, strings.Join(annotations, ","), quote(all))
	where := fmt.Sprintf(`"item_id":%q,"output_index":%d,"content_index":0`, id, at)
	s.event("response.output_text.done", where+`,"text":`+quote(all)+`,"logprobs":[]`)
	s.event("response.content_part.done", where+`,"part":`+part)
	return s.ends(at, fmt.Sprintf(`{"id":%q,"type":"message","status":"completed","content":[%s],"role":"assistant","phase":"final_answer"}`, id, part))
}

func (s *script) call(at int, id string, deltas ...string) *script {
	s.item(at, fmt.Sprintf(`{"id":%q,"type":"function_call","status":"in_progress","arguments":"","call_id":"call_%s","name":"get"}`, id, id))
	for _, t := range deltas {
		s.event("response.function_call_arguments.delta", fmt.Sprintf(`"item_id":%q,"output_index":%d,"delta":%s`, id, at, quote(t)))
	}
	return s
}

func (s *script) completed(in, out int) *script {
	return s.event("response.completed", fmt.Sprintf(`"response":{"id":%q,"object":"response","created_at":9,"completed_at":10,"status":"completed","model":"other","output":["of this attempt"],"store":false,"usage":{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,"total_tokens":%d},"novel":true}`, s.id, in, in, out, in+out))
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// splice renders the events of a later attempt whose first text goes on in the last block of said, as relay edits them:
// reasoning is left out, blocks are numbered on.
func splice(t *testing.T, said *turn.Snapshot, later []byte) (client []byte) {
	t.Helper()
	req := dialecttest.Parse(t, d, []byte(hello))
	dec := d.NewDecoder(req)
	place := map[int]int{}
	joint := len(said.Blocks) - 1
	var seat turn.Joint
	if joint >= 0 {
		seat = turn.Joint{Block: turn.Measure(said.Blocks[joint].Plain()), Had: len(said.Blocks[joint].Text)}
	}
	for _, e := range dialecttest.Units(later) {
		ds, err := dec.Decode(nil, e)
		if err != nil {
			t.Fatal(err)
		}
		next, index := len(said.Blocks), said.NextIndex(false)
		for i := range ds {
			switch x := &ds[i]; x.Kind {
			case turn.Head:
				x.Kind = turn.Skip
			case turn.Open:
				switch {
				case x.Of == turn.Reasoning:
					place[x.Block], x.Kind = -1, turn.Skip
				case x.Of == turn.Prose && joint >= 0 && said.Blocks[joint].Kind == turn.Prose && !said.Blocks[joint].Closed:
					place[x.Block], x.Kind, joint = joint, turn.Skip, -1
				default:
					place[x.Block] = next
					x.Block, x.Index = next, index
					next++
					if x.Part {
						x.Index--
						break
					}
					index++
				}
			case turn.Text, turn.Sign, turn.Extra, turn.Close, turn.Opaque:
				if to, ok := place[x.Block]; ok && to >= 0 {
					x.Block = to
					if x.Kind == turn.Extra && seat.Had > 0 && to == len(said.Blocks)-1 {
						x.Joint = &seat
					}
				} else if x.Block >= 0 {
					x.Kind = turn.Skip
				}
			}
		}
		client = d.Rewrite(client, req, e, ds, said)
		for _, x := range ds {
			if err := said.Fold(x); err != nil {
				t.Fatalf("%v: %s", err, e.Data)
			}
		}
	}
	return client
}
