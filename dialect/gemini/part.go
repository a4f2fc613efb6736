package gemini

import "github.com/unbroken-llm/unbroken/internal/jsonwalk"

// partKind is what a part is, by the member that carries it.
type partKind uint8

const (
	inert      partKind = iota // nothing is said: {}, an empty text
	answer                     // text
	thought                    // text with thought: true
	calling                    // functionCall
	hostedCall                 // executableCode, toolCall
	hostedDone                 // codeExecutionResult, toolResponse
	foreign                    // inlineData, fileData, a part of a later year
)

// part is one element of content.parts; raw values.
type part struct {
	kind      partKind
	name      []byte // the member that carries it
	text      []byte // answer, thought: string body
	value     []byte // the others: the raw member
	signature []byte // thoughtSignature, string body; nil: none
}

func readPart(raw []byte) (part, error) {
	var p part
	var text []byte
	var hasText, thinks, strange bool
	w := jsonwalk.Members(raw)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		if jsonwalk.IsNull(val) {
			continue
		}
		kind, unknown := foreign, false
		switch string(key) {
		case "text":
			text, hasText = jsonwalk.String(val)
			if hasText {
				continue
			}
		case "thought":
			thinks, _ = jsonwalk.Bool(val)
			continue
		case "thoughtSignature":
			if body, ok := jsonwalk.String(val); ok && len(body) > 0 {
				p.signature = body
			}
			continue
		case "videoMetadata", "mediaResolution", "mediaProcessing", "partMetadata", "speechMetadata", "audioTranscription":
			continue // about the part, never the part itself
		case "functionCall":
			kind = calling
		case "executableCode", "toolCall":
			kind = hostedCall
		case "codeExecutionResult", "toolResponse":
			kind = hostedDone
		case "inlineData", "fileData":
		default:
			unknown = true
		}
		if p.kind == inert || p.kind == foreign { // a part we know beats one we do not
			p.kind, p.name, p.value, strange = kind, key, val, unknown
		}
	}
	if w.Err() != nil {
		return p, ErrMalformed
	}
	if strange && hasText {
		// A part is one thing only: beside a text, a member of a later year is about it.
		p.kind, p.name, p.value = inert, nil, nil
	}
	if p.kind == inert && (len(text) > 0 || p.signature != nil) {
		p.kind, p.text = answer, text
		if thinks {
			p.kind = thought
		}
	}
	return p, nil
}

// ident reads the id of a call or a hosted item, and what it is called.
func (p *part) ident() (id, name []byte) {
	w := jsonwalk.Members(p.value)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		switch string(key) {
		case "id":
			id, _ = jsonwalk.String(val)
		case "name", "toolType":
			name, _ = jsonwalk.String(val)
		}
	}
	if name == nil && p.kind != calling {
		name = p.name
	}
	return id, name
}

// funcCall is a functionCall; raw values, absent and null are nil.
type funcCall struct {
	id, name  []byte // string bodies
	args      []byte // object
	partial   []byte // array
	goesOn    bool   // willContinue
	malformed bool
}

func readCall(raw []byte) funcCall {
	var f funcCall
	w := jsonwalk.Members(raw)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		if jsonwalk.IsNull(val) {
			continue
		}
		switch string(key) {
		case "id":
			f.id, _ = jsonwalk.String(val)
		case "name":
			f.name, _ = jsonwalk.String(val)
		case "args":
			f.args = val
		case "partialArgs":
			f.partial = val
		case "willContinue":
			f.goesOn, _ = jsonwalk.Bool(val)
		}
	}
	f.malformed = w.Err() != nil
	return f
}
