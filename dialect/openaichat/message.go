package openaichat

import "github.com/unbroken-llm/unbroken/internal/jsonwalk"

// trailingAssistant returns the decoded text of a message that the model is to go
// on with: an assistant's, without calls. ok is false for any other message.
func trailingAssistant(message []byte) (text []byte, ok bool) {
	if string(jsonwalk.Get(message, "role")) != `"assistant"` || filled(jsonwalk.Get(message, "tool_calls")) {
		return nil, false
	}
	content := jsonwalk.Get(message, "content")
	if body, is := jsonwalk.String(content); is {
		return jsonwalk.Unescape(nil, body), true
	}
	e := jsonwalk.Elements(content)
	for raw, more := e.Next(); more; raw, more = e.Next() {
		text = jsonwalk.Unescape(text, readPart(raw).body)
	}
	return text, content == nil || jsonwalk.IsNull(content) || e.Err() == nil
}

func appendMember(dst []byte, key string, val []byte) []byte {
	dst = append(dst, '"')
	dst = append(dst, key...)
	dst = append(dst, `":`...)
	return append(dst, val...)
}

func appendQuoted(dst, body []byte) []byte {
	dst = append(dst, '"')
	dst = append(dst, body...)
	return append(dst, '"')
}

// quote renders plain text as a JSON string.
func quote(plain []byte) []byte {
	return append(jsonwalk.Escape([]byte{'"'}, plain), '"')
}
