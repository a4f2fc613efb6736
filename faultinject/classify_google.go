package faultinject

import "encoding/json"

// classifyGoogle tells the kind of an event of Gemini or of Interactions; ok is
// false if it is neither.
func classifyGoogle(data []byte) (k Kind, ok bool) {
	var e struct {
		EventType string `json:"event_type"`
		Step      struct{ Type string }
		Delta     struct{ Type string }

		Candidates []struct {
			FinishReason string
			Content      struct{ Parts []geminiPiece }
		}
		PromptFeedback struct{ BlockReason string }
		UsageMetadata  json.RawMessage
	}
	switch err := json.Unmarshal(data, &e); {
	case err != nil:
		return "", false
	case e.EventType != "":
		return classifyInteraction(e.EventType, e.Step.Type, e.Delta.Type), true
	case e.PromptFeedback.BlockReason != "":
		return KindEnd, true
	case len(e.Candidates) == 0:
		return KindUsage, len(e.UsageMetadata) > 0
	}
	switch c := e.Candidates[0]; {
	case c.FinishReason == "CONTINUATION":
		return KindPause, true
	case c.FinishReason != "":
		return KindEnd, true
	case len(c.Content.Parts) > 0:
		return c.Content.Parts[0].kind(), true
	}
	return KindOther, true
}

// geminiPiece is what of a part tells its kind.
type geminiPiece struct {
	Text         string
	Thought      bool
	FunctionCall *struct {
		Name        string
		PartialArgs []json.RawMessage
	}
}

func (p geminiPiece) kind() Kind {
	switch f := p.FunctionCall; {
	case f != nil && f.Name != "":
		return KindTool
	case f != nil && len(f.PartialArgs) > 0:
		return KindArgs
	case f != nil:
		return KindClose
	case p.Thought:
		return KindThinking
	case p.Text != "":
		return KindText
	}
	return KindOther
}

func classifyInteraction(event, step, delta string) Kind {
	switch event {
	case "interaction.created":
		return KindStart
	case "interaction.completed":
		return KindFinish
	case "step.start":
		switch step {
		case "function_call":
			return KindTool
		case "model_output", "thought":
			return KindOpen
		}
	case "step.delta":
		switch delta {
		case "text":
			return KindText
		case "thought_summary":
			return KindThinking
		case "thought_signature":
			return KindSignature
		case "arguments_delta":
			return KindArgs
		}
	case "step.stop":
		return KindClose
	}
	return KindOther
}
