package faultinject

import (
	"encoding/json"
	"fmt"
	"strings"
)

// geminiCallChunks renders the n-th call of a step. It comes whole, in a part
// of its own; from version 3 on it has an id, and the first call of the step the
// signature. A call that was cut is not sent.
func geminiCallChunks(k Block, n int, o Options) []geminiChunk {
	args, whole := wholeArgs(k.Args)
	if !whole {
		return nil
	}
	id, sign := "", ""
	if geminiVersion(modelName(o.Model)) >= 3 {
		id = `,"id": ` + quote(k.callID(n, o))
		if n == 0 {
			sign = `,"thoughtSignature": ` + quote(signCall(k.Name, args))
		}
	}
	out := len(tokens(k.Name, o.Seed)) + len(tokens(args, o.Seed))
	if o.StreamArgs {
		return streamedCall(k.Name, args, id, sign, out, o)
	}
	return []geminiChunk{{kind: KindTool, out: out, parts: fmt.Sprintf(`{"functionCall": {"name": %s,"args": %s%s}%s}`, quote(k.Name), args, id, sign)}}
}

func (k Block) callID(n int, o Options) string {
	if k.ID != "" {
		return k.ID
	}
	return shortID(o, fmt.Sprint("call", n))
}

// streamedCall renders a call whose arguments arrive as they are made: the name,
// each member by its JSON path, strings piece by piece, and an empty end mark
// (streamFunctionCallArguments, Vertex AI).
func streamedCall(name, args, id, sign string, out int, o Options) []geminiChunk {
	chunks := []geminiChunk{{kind: KindTool, out: out, parts: fmt.Sprintf(`{"functionCall": {"name": %s,"willContinue": true%s}%s}`, quote(name), id, sign)}}
	members, err := membersOf([]byte(args))
	if err != nil {
		panic("BUG: arguments that are no object: " + args)
	}
	for _, m := range members {
		for _, arg := range partialArgs("$."+m.key, m.value, o) {
			chunks = append(chunks, geminiChunk{kind: KindArgs, parts: `{"functionCall": {"partialArgs": [` + arg + `],"willContinue": true}}`})
		}
	}
	return append(chunks, geminiChunk{kind: KindClose, parts: `{"functionCall": {}}`})
}

// partialArgs renders one value by its path.
func partialArgs(path string, raw json.RawMessage, o Options) []string {
	at := `{"jsonPath": ` + quote(path) + `,`
	switch raw[0] {
	case '"':
		ps := pieces(unquote(string(raw)), o)
		if len(ps) == 0 {
			return []string{at + `"stringValue": ""}`}
		}
		for i := range ps {
			ps[i] = at + `"stringValue": ` + ps[i] + `,"willContinue": true}`
		}
		ps[len(ps)-1] = strings.Replace(ps[len(ps)-1], `,"willContinue": true}`, `}`, 1)
		return ps
	case '{':
		var out []string
		members, err := membersOf(raw)
		if err != nil {
			panic("BUG: an object cannot be read: " + string(raw))
		}
		for _, m := range members {
			out = append(out, partialArgs(path+"."+m.key, m.value, o)...)
		}
		return out
	case '[':
		var elements []json.RawMessage
		if err := json.Unmarshal(raw, &elements); err != nil {
			panic("BUG: an array cannot be read: " + string(raw))
		}
		var out []string
		for i, e := range elements {
			out = append(out, partialArgs(fmt.Sprintf("%s[%d]", path, i), e, o)...)
		}
		return out
	case 't', 'f':
		return []string{at + `"boolValue": ` + string(raw) + `}`}
	case 'n':
		return []string{at + `"nullValue": null}`}
	}
	return []string{at + `"numberValue": ` + string(raw) + `}`}
}

// checkpointEvery is how many chunks of text lie between two checkpoints.
const checkpointEvery = 4

// checkpoints puts a continuation token on every fourth chunk of text, and lets
// the stream pause at the third of them if it is told to.
func checkpoints(chunks []geminiChunk, o Options) []geminiChunk {
	if o.Checkpoint == "" || o.Variant.SplitPairs {
		return chunks
	}
	said, texts := o.Said, 0
	for i := range chunks {
		c := &chunks[i]
		if said += c.text; c.kind != KindText {
			continue
		}
		if texts++; texts%checkpointEvery > 0 {
			continue
		}
		c.more += `,"continuationToken": ` + quote(newToken(o.Checkpoint, said))
		if o.Variant.Pauses && texts == 3*checkpointEvery && i < len(chunks)-1 {
			c.kind, c.finish = KindPause, "CONTINUATION"
			return chunks[:i+1]
		}
	}
	return chunks
}
