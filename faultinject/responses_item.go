package faultinject

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// responsesPrefix is how the ids of responses begin.
const responsesPrefix = "resp_"

// responsesItem is one output item: a run of text blocks is one message, every
// other block is an item of its own.
type responsesItem struct {
	kind   string
	id     string
	callID string
	parts  []Block
	status string

	names *int // counts the names given, for servers that rotate ids
}

// itemIDs are the beginnings of item ids, which the provider checks.
var itemIDs = map[string]string{
	"message": "msg_", "reasoning": "rs_", "function_call": "fc_", "custom_tool_call": "ctc_", "web_search_call": "ws_",
}

// responsesItems arranges the blocks of a as output items.
func responsesItems(a Answer, o Options) []responsesItem {
	var items []responsesItem
	calls := 0
	add := func(kind string, k Block) *responsesItem {
		id := itemIDs[kind] + label(uint64(len(items)), o.ID, "item")
		items = append(items, responsesItem{kind: kind, id: id, parts: []Block{k}, status: "completed", names: new(int)})
		return &items[len(items)-1]
	}
	for _, k := range a.Blocks {
		switch k.Kind {
		case TextBlock, RefusalBlock:
			if n := len(items); n > 0 && items[n-1].kind == "message" {
				items[n-1].parts = append(items[n-1].parts, k)
				continue
			}
			add("message", k)
		case ThinkingBlock, RedactedBlock:
			add("reasoning", k)
		case SearchBlock:
			add("web_search_call", k)
		case ToolBlock, CustomBlock:
			kind := "function_call"
			if k.Kind == CustomBlock {
				kind = "custom_tool_call"
			}
			it := add(kind, k)
			if it.callID = k.ID; it.callID == "" {
				it.callID = callID("call_", o, calls)
			}
			calls++
		}
	}
	if n := len(items); n > 0 && a.Finish == FinishLength {
		items[n-1].status = "incomplete"
	}
	return items
}

// name is the id of the item, as the next event spells it: some servers
// (GitHub Copilot) give it another one each time (WIRE 1.2).
func (it responsesItem) name(o Options) string {
	if !o.Variant.RotateIDs {
		return it.id
	}
	*it.names++
	return itemIDs[it.kind] + label(uint64(*it.names), it.id)
}

// args are the arguments of a function call: never empty, unless they were
// cut off.
func (it responsesItem) args() string {
	if args := it.parts[0].Args; args != "" || it.status == "incomplete" {
		return args
	}
	return "{}"
}

// thought is the reasoning the caller may see: none unless it asked for a
// summary, or the model is one that shows its reasoning.
func (it responsesItem) thought(o Options) string {
	if it.parts[0].Kind == RedactedBlock || !o.Variant.ReasoningText && !o.summarises() {
		return ""
	}
	return it.parts[0].Text
}

// opening is the item as output_item.added has it.
func (it responsesItem) opening(o Options) string {
	id := `{"id":` + quote(it.name(o)) + `,"type":"` + it.kind + `"`
	call := `,"call_id":` + quote(it.callID) + `,"name":` + quote(it.parts[0].Name) + `}`
	switch it.kind {
	case "reasoning":
		return id + it.encrypted(o, "") + `,"summary":[]}`
	case "function_call":
		return id + `,"status":"in_progress","arguments":""` + call
	case "custom_tool_call":
		return id + `,"status":"in_progress","input":""` + call
	case "web_search_call":
		return id + `,"status":"in_progress"}`
	}
	return id + `,"status":"in_progress","content":[],"role":"assistant"}`
}

// whole is the finished item.
func (it responsesItem) whole(o Options) string {
	id := `{"id":` + quote(it.name(o)) + `,"type":"` + it.kind + `"`
	status := `,"status":"` + it.status + `"`
	call := `,"call_id":` + quote(it.callID) + `,"name":` + quote(it.parts[0].Name) + `}`
	switch it.kind {
	case "reasoning":
		summary, content := "", ""
		if text := it.thought(o); text != "" && o.Variant.ReasoningText {
			content = `,"content":[{"type":"reasoning_text","text":` + quote(text) + `}]`
		} else if text != "" {
			summary = `{"type":"summary_text","text":` + quote(text) + `}`
		}
		return id + it.encrypted(o, it.parts[0].Text) + `,"summary":[` + summary + `]` + content + `}`
	case "function_call":
		return id + status + `,"arguments":` + quote(it.args()) + call
	case "custom_tool_call":
		return id + status + `,"input":` + quote(it.parts[0].Args) + call
	case "web_search_call":
		return id + `,"status":"completed","action":{"type":"search","query":` + quote(it.parts[0].Text) + `}}`
	}
	parts := make([]string, len(it.parts))
	for i, k := range it.parts {
		parts[i] = responsesPart(k, o)
	}
	return id + status + `,"content":[` + strings.Join(parts, ",") + `],"role":"assistant"}`
}

// encrypted is the member with the sealed reasoning, if the caller asked for
// it. The opening has another one than the end, of what was thought by then.
func (it responsesItem) encrypted(o Options, text string) string {
	if !o.sealed() {
		return ""
	}
	return `,"encrypted_content":` + quote(Seal(text))
}

// responsesPart is a finished content part.
func responsesPart(k Block, o Options) string {
	if k.Kind == RefusalBlock {
		return `{"type":"refusal","refusal":` + quote(k.Text) + `}`
	}
	notes := k.annotations()
	all := make([]string, len(notes))
	for i, n := range notes {
		all[i] = n.json
	}
	return `{"type":"output_text","annotations":[` + strings.Join(all, ",") + `],"logprobs":[` + allLogprobs(k.Text, o) + `],"text":` + quote(k.Text) + `}`
}

// annotation is a citation as the wire has it.
type annotation struct {
	end  int // in characters, of the text it belongs to
	json string
	told bool
}

// annotations are the citations of the phrases that k really contains.
func (k Block) annotations() []annotation {
	var out []annotation
	for _, c := range k.Cites {
		at := strings.Index(k.Text, c.Phrase)
		if at < 0 {
			continue // cut off, or said before this part began
		}
		start := utf8.RuneCountInString(k.Text[:at])
		end := start + utf8.RuneCountInString(c.Phrase)
		out = append(out, annotation{end: end, json: fmt.Sprintf(`{"type":"url_citation","start_index":%d,"end_index":%d,"title":%s,"url":%s}`,
			start, end, quote(c.Title), quote(c.URL))})
	}
	return out
}
