package dialect

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

// Chronicle makes a [History] of the items of a request, in their order. A turn of
// the model is a run of its items; what the request asks for goes on with a run at
// its end.
type Chronicle struct {
	h       hash.Hash
	buf     []byte
	model   bool // the last item was the model's
	open    bool // results belong to round
	round   Round
	history History
}

// NewChronicle begins the history of a request that builds on the turn with the
// given id; "": on none. Results before the first item are that turn's.
func NewChronicle(id string) *Chronicle {
	c := &Chronicle{h: sha256.New()}
	if id != "" {
		c.round.Before = After(id)
		c.h.Write(c.round.Before[:])
		c.open = true
		c.history.Prior, c.history.HasPrior = c.round.Before, true
	}
	return c
}

// Model adds an item that the model said.
func (c *Chronicle) Model(raw []byte) {
	if !c.model {
		c.flush()
		c.round.Before = c.past()
		c.model, c.open = true, true
	}
	c.add(raw)
}

// Other adds an item of anybody else.
func (c *Chronicle) Other(raw []byte) {
	if c.model {
		c.history.Prior, c.history.HasPrior = c.round.Before, true
	}
	c.model = false
	c.add(raw)
}

// Result says that the item to come answers a call of the last turn, and where its
// content ends. The last one with a place counts.
func (c *Chronicle) Result(call string, end Place) {
	if !c.open {
		return
	}
	c.round.Calls = append(c.round.Calls, call)
	if end.At > 0 {
		c.round.Note = end
	}
}

// History ends the chronicle.
func (c *Chronicle) History() History {
	if c.model {
		c.history.Now = c.round.Before // the caller's own prefill belongs to the turn
	} else {
		c.history.Now = c.past()
	}
	c.flush()
	return c.history
}

func (c *Chronicle) flush() {
	if len(c.round.Calls) > 0 {
		c.history.Rounds = append(c.history.Rounds, c.round)
	}
	c.round = Round{}
}

func (c *Chronicle) past() Past { return Past(c.h.Sum(nil)) }

func (c *Chronicle) add(raw []byte) {
	c.buf = canonical(c.buf[:0], raw)
	c.h.Write(c.buf)
}

// canonical appends a value in a form that only says what it means. It is no JSON:
// texts are decoded, and have their lengths in front.
func canonical(dst, raw []byte) []byte {
	switch jsonwalk.KindOf(raw) {
	case jsonwalk.KindObject:
		dst = append(dst, '{')
		w := jsonwalk.Members(raw)
		for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
			if varies(key, val) {
				continue
			}
			dst = canonical(appendText(dst, 'k', key), val)
		}
		return append(dst, '}')
	case jsonwalk.KindArray:
		if text, ok := onlyText(raw); ok {
			return appendText(dst, 's', text)
		}
		dst = append(dst, '[')
		es := jsonwalk.Elements(raw)
		for val, ok := es.Next(); ok; val, ok = es.Next() {
			if !cachePoint(val) {
				dst = canonical(dst, val)
			}
		}
		return append(dst, ']')
	case jsonwalk.KindString:
		body, _ := jsonwalk.String(raw)
		return appendText(dst, 's', body)
	default:
		return append(append(dst, 'v'), raw...)
	}
}

// varies reports whether a member may be there in one request and not in the next:
// a cache mark, or the type that the Responses API assumes of a message.
func varies(key, val []byte) bool {
	return string(key) == "cache_control" || string(key) == "type" && string(val) == `"message"`
}

// cachePoint reports whether a block is nothing but a cache mark, as Bedrock has
// them.
func cachePoint(block []byte) bool {
	if jsonwalk.KindOf(block) != jsonwalk.KindObject {
		return false
	}
	w := jsonwalk.Members(block)
	key, _, _ := w.Next()
	_, _, more := w.Next()
	return string(key) == "cachePoint" && !more
}

// onlyText is the escaped text of a list that is one text part.
func onlyText(list []byte) (text []byte, ok bool) {
	es := jsonwalk.Elements(list)
	part, one := es.Next()
	if _, more := es.Next(); !one || more || jsonwalk.KindOf(part) != jsonwalk.KindObject {
		return nil, false
	}
	typed := false
	w := jsonwalk.Members(part)
	for key, val, more := w.Next(); more; key, val, more = w.Next() {
		switch string(key) {
		case "cache_control":
		case "type":
			switch string(val) {
			case `"text"`, `"input_text"`, `"output_text"`:
				typed = true
			default:
				return nil, false
			}
		case "text":
			if text, ok = jsonwalk.String(val); !ok {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return text, ok && typed
}

// appendText appends an escaped body, decoded, with its kind and length.
func appendText(dst []byte, kind byte, body []byte) []byte {
	dst = append(dst, kind, 0, 0, 0, 0)
	at := len(dst)
	dst = jsonwalk.Unescape(dst, body)
	binary.BigEndian.PutUint32(dst[at-4:], uint32(len(dst)-at))
	return dst
}
