package openaichat

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Decoder decodes one attempt. The zero value is ready.
type Decoder struct {
	// The last chunk, if it was a piece of text and nothing else, and what it said. It
	// changed nothing here, so what differs from it in the text only says the same but
	// for the text.
	like jsonwalk.Stencil
	last turn.Delta

	args       bool // the chunk says arguments, which change what is known of their call
	texts      bool // see Wire
	identified bool // the head was seen
	blocks     int  // blocks opened so far
	kept       dialect.Keeping
	cited      []beside // members of chunks that were noted, as they came last
	lanes      []lane
	out        []turn.Delta // what Decode appends to
	lost       error        // a chunk broke off after it had changed the lanes
}

func (d *Decoder) put(x turn.Delta) { d.out = append(d.out, x) }

// More implements [dialect.Repeater].
func (d *Decoder) More(e sse.Event) (m turn.More, ok bool) {
	body, ok := d.like.Body(e.Data)
	if !ok || e.Name != nil {
		return m, false
	}
	return turn.More{Block: d.last.Block, Stage: d.last.Stage, Text: body}, true
}

// Decode implements dialect.Decoder. In one chunk the order is: head, then per
// choice reasoning, answer, refusal, calls, extras and finish, then usage, then
// an error. A chunk that says nothing is a pulse. When a chunk turns out malformed
// behind something it said, the blocks are no longer known and every later chunk
// is the same error; the end marker is still one.
func (d *Decoder) Decode(dst []turn.Delta, e sse.Event) ([]turn.Delta, error) {
	if m, ok := d.More(e); ok {
		dst = append(dst, d.last)
		dst[len(dst)-1].Text = m.Text
		return dst, nil
	}
	d.like.Forget()
	d.out, d.args = dst, false
	err := d.decode(e)
	out := d.out
	d.out = nil
	if err != nil {
		if len(out) > len(dst) {
			d.lost = err
		}
		return dst, err
	}
	if said := out[len(dst):]; len(said) == 1 && said[0].Kind == turn.Text && e.Name == nil && !d.args {
		d.last = said[0]
		d.like.Learn(e.Data, d.last.Text)
		d.last.Text = nil
	}
	return out, nil
}

func (d *Decoder) decode(e sse.Event) error {
	data := bytes.TrimSpace(e.Data)
	failed := string(e.Name) == "error"
	switch {
	case e.Comment():
		// Older llama.cpp builds report errors as an "error: {...}" line.
		if line, ok := bytes.CutPrefix(bytes.TrimSpace(e.Stray()), []byte("error:")); ok {
			d.put(turn.Delta{Kind: turn.Fault, Fault: readFault(chunk{fault: bytes.TrimSpace(line)})})
		}
		return nil
	case string(data) == "[DONE]":
		d.put(turn.Delta{Kind: turn.Terminal})
		return nil
	case len(data) == 0 && failed, len(data) > 0 && data[0] != '{' && failed:
		d.put(turn.Delta{Kind: turn.Fault, Fault: &turn.WireFault{Message: string(data)}, Raw: data})
		return nil
	case len(data) == 0, data[0] == ':': // comments dressed up as data (FIELD-REPORTS B7)
		d.put(turn.Delta{Kind: turn.Pulse})
		return nil
	case data[0] != '{':
		if !jsonwalk.Valid(data) {
			return ErrNotJSON
		}
		d.put(turn.Delta{Kind: turn.Opaque, Block: -1, Raw: data})
		return nil
	}
	if d.lost != nil {
		return d.lost
	}
	c, err := readChunk(data)
	if err != nil {
		return err
	}
	return d.chunk(&c, data, failed || c.failed())
}

func (d *Decoder) chunk(c *chunk, data []byte, failed bool) error {
	was := len(d.out)
	spoken := filled(c.choices)
	// Azure opens with a chunk of filter results without choices and with an empty
	// id; it identifies nothing. Snowflake's id is empty in every chunk.
	if !d.identified && (spoken || len(c.id) > 2 && c.choices != nil) {
		d.identified = true
		d.put(turn.Delta{Kind: turn.Head, Raw: data})
	}
	strange := c.choices == nil && c.usage == nil && c.groq == nil && !failed
	if spoken {
		e := jsonwalk.Elements(c.choices)
		for raw, ok := e.Next(); ok; raw, ok = e.Next() {
			odd, err := d.choice(raw, c, data, &failed)
			if err != nil {
				return err
			}
			strange = strange || odd
		}
		if e.Err() != nil {
			return ErrMalformed
		}
	}
	d.cite(c)
	d.count(c.usage)
	if c.usage == nil && c.groq != nil {
		d.count(jsonwalk.Get(c.groq, "usage"))
	}
	if strange {
		d.put(turn.Delta{Kind: turn.Opaque, Block: -1, Raw: data})
	}
	if failed {
		d.put(turn.Delta{Kind: turn.Fault, Fault: readFault(*c), Raw: data})
	}
	if len(d.out) == was {
		d.put(turn.Delta{Kind: turn.Pulse})
	}
	return nil
}

// choice reads one element of choices; strange reports content of unknown
// meaning. A failure in the chunk takes the meaning from its finish reason.
func (d *Decoder) choice(raw []byte, c *chunk, data []byte, failed *bool) (strange bool, err error) {
	ch, err := readChoice(raw)
	if err != nil {
		return false, err
	}
	s, err := readDelta(ch.delta)
	if err != nil {
		return false, err
	}
	if ch.fault != nil && c.fault == nil {
		c.fault, *failed = ch.fault, true
	}
	l := d.lane(ch.index)
	d.think(l, &s)
	if d.texts && ch.text != nil {
		s.content = ch.text
	}
	d.answer(l, s.content)
	if body, ok := jsonwalk.String(s.refusal); ok {
		d.say(l, turn.Refusal, nil, body)
	}
	if s.calls != nil {
		e := jsonwalk.Elements(s.calls)
		for f, ok := e.Next(); ok; f, ok = e.Next() {
			if err := d.ring(l, f); err != nil {
				return false, err
			}
		}
		if e.Err() != nil {
			return false, ErrMalformed
		}
	}
	d.attach(l, &ch, &s)
	if len(ch.finish) > 0 && !l.finished && !*failed {
		l.finished = true
		why := finishWhy(ch.finish, ch.native)
		if why != turn.Broken {
			d.shut(l)
		}
		d.put(turn.Delta{Kind: turn.Finish, Choice: l.index, Why: why, Text: ch.finish})
	}
	if c.usage == nil {
		d.count(ch.usage) // Moonshot
	}
	return ch.strange || ch.text != nil && ch.delta == nil && !d.texts || len(s.beside) > 0, nil
}

// think reads the reasoning of a delta, in whichever member it comes.
func (d *Decoder) think(l *lane, s *spokenDelta) {
	body, name := s.thought()
	if d.say(l, turn.Reasoning, name, body); s.details == nil {
		return
	}
	if len(body) > 0 {
		d.out[len(d.out)-1].Stage = detailed
	}
	sealed := false
	e := jsonwalk.Elements(s.details)
	for raw, ok := e.Next(); ok; raw, ok = e.Next() {
		words, seal := readDetail(raw)
		sealed = sealed || seal
		if len(body) == 0 {
			d.say(l, turn.Reasoning, nameDetails, words)
		}
	}
	if sealed {
		n := l.thought
		if n < 0 {
			n = d.flow(l, turn.Reasoning, nameDetails)
		}
		d.note(l, n, beside{inDelta, nameDetails, wordless(s.details)})
	}
}

// answer reads content: a string, or a list of parts (Mistral).
func (d *Decoder) answer(l *lane, content []byte) {
	if body, ok := jsonwalk.String(content); ok {
		d.say(l, turn.Prose, nil, body)
		return
	}
	e := jsonwalk.Elements(content)
	for raw, ok := e.Next(); ok; raw, ok = e.Next() {
		p := readPart(raw)
		switch {
		case p.kind == turn.Prose:
			d.say(l, turn.Prose, nil, p.body)
		case p.kind == turn.Reasoning:
			d.say(l, turn.Reasoning, nameThinking, p.body)
			in := jsonwalk.Elements(p.list)
			for inner, ok := in.Next(); ok; inner, ok = in.Next() {
				d.say(l, turn.Reasoning, nameThinking, readPart(inner).body)
			}
		default: // an image, a reference
			d.note(l, d.flow(l, turn.Prose, nil), beside{inDelta, nameContent, appendList(nil, [][]byte{raw})})
		}
	}
}

// attach notes what stands beside the text and cannot be continued.
func (d *Decoder) attach(l *lane, ch *choice, s *spokenDelta) {
	if s.function != nil {
		// The call form of 2023, which nothing rebuilds: it passes as it is.
		d.note(l, d.flow(l, turn.Unknown, nameFunction), beside{inDelta, nameFunction, s.function})
	}
	if s.audio != nil {
		d.note(l, d.flow(l, turn.Unknown, nameAudio), beside{inDelta, nameAudio, s.audio})
	}
	likely := ch.logprobs != nil && hasLogprobs(ch.logprobs)
	cites := filled(s.annotations)
	l.wait(s.beside)
	n, about := l.open, likely || cites
	if n < 0 && (l.finished || !about) {
		n = l.last
	}
	if !about && (len(l.waiting) == 0 || n < 0 && len(ch.finish) == 0) {
		return
	}
	if n < 0 {
		n = d.flow(l, turn.Prose, nil)
	}
	if cites {
		x := turn.Delta{Kind: turn.Extra, Choice: l.index, Block: n, Raw: s.annotations}
		d.kept.Keep(&x, inside(s.annotations))
		d.put(x)
	}
	if likely {
		d.note(l, n, beside{inChoice, nameLogprobs, ch.logprobs})
	}
	for _, b := range l.waiting {
		d.note(l, n, b)
	}
	l.waiting = nil
}

// inside is what stands between the brackets of an array.
func inside(array []byte) []byte { return bytes.TrimSpace(array[1 : len(array)-1]) }

func (d *Decoder) count(raw []byte) {
	if u, ok := readUsage(raw); ok {
		d.put(turn.Delta{Kind: turn.Count, Usage: u})
	}
}
