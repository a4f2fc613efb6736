package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/aws/smithy-go"

	"github.com/unbroken-llm/unbroken/internal/bedrocksdk"
)

// bedrockClient is AWS's Go SDK with a Bedrock API key.
func (j job) bedrockClient() (*bedrockruntime.Client, func()) {
	h := http.Header{}
	for k, v := range j.Headers {
		h.Set(k, v)
	}
	return bedrocksdk.New(j.Base, h)
}

// converse is the request of a Converse call.
func (j job) converse() *bedrockruntime.ConverseStreamInput {
	in := &bedrockruntime.ConverseStreamInput{
		ModelId:         aws.String(j.Model),
		Messages:        []types.Message{{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: j.Prompt}}}},
		InferenceConfig: &types.InferenceConfiguration{MaxTokens: aws.Int32(int32(j.MaxTokens))},
	}
	for _, t := range j.Tools {
		var schema any
		must(json.Unmarshal(t.Schema, &schema))
		spec := types.ToolSpecification{Name: aws.String(t.Name), Description: aws.String(t.Description), InputSchema: &types.ToolInputSchemaMemberJson{Value: document.NewLazyDocument(schema)}}
		in.ToolConfig = &types.ToolConfiguration{Tools: []types.Tool{&types.ToolMemberToolSpec{Value: spec}}}
	}
	if j.Schema != nil {
		format := types.OutputFormatStructureMemberJsonSchema{Value: types.JsonSchemaDefinition{Name: aws.String("report"), Schema: aws.String(string(j.Schema))}}
		in.OutputConfig = &types.OutputConfig{TextFormat: &types.OutputFormat{Type: types.OutputFormatTypeJsonSchema, Structure: &format}}
	}
	if j.Thinking != nil {
		in.AdditionalModelRequestFields = document.NewLazyDocument(map[string]any{"thinking": map[string]any{"type": j.Thinking.Type, "budget_tokens": j.Thinking.Budget}})
	}
	return in
}

// runConverse adds the events of ConverseStream up.
func runConverse(ctx context.Context, j job) (reply, error) {
	c, done := j.bedrockClient()
	defer done()
	out, err := c.ConverseStream(ctx, j.converse())
	if err != nil {
		return reply{Failure: bedrockFailure(err)}, nil
	}
	s := out.GetStream()
	defer s.Close()
	var m message
	of := map[int32]int{} // block index to call
	for e := range s.Events() {
		switch e := e.(type) {
		case *types.ConverseStreamOutputMemberMessageStart:
			m.Starts++
		case *types.ConverseStreamOutputMemberContentBlockStart:
			use := e.Value.Start.(*types.ContentBlockStartMemberToolUse).Value
			of[*e.Value.ContentBlockIndex] = len(m.Calls)
			m.Calls = append(m.Calls, call{ID: *use.ToolUseId, Name: *use.Name})
		case *types.ConverseStreamOutputMemberContentBlockDelta:
			switch d := e.Value.Delta.(type) {
			case *types.ContentBlockDeltaMemberText:
				m.Text += d.Value
			case *types.ContentBlockDeltaMemberToolUse:
				m.Calls[of[*e.Value.ContentBlockIndex]].Args += *d.Value.Input
			case *types.ContentBlockDeltaMemberReasoningContent:
				if text, ok := d.Value.(*types.ReasoningContentBlockDeltaMemberText); ok {
					m.Reasoning += text.Value
				}
			}
		case *types.ConverseStreamOutputMemberMessageStop:
			m.Finish = joinFinish(m.Finish, string(e.Value.StopReason))
		case *types.ConverseStreamOutputMemberMetadata:
			m.Usages++
		}
	}
	return reply{Message: m, Failure: bedrockFailure(s.Err())}, nil
}

// invokeBody is the same request in the model's own wire.
func (j job) invokeBody() []byte {
	body := map[string]any{
		"anthropic_version": "bedrock-2023-05-31", "max_tokens": j.MaxTokens,
		"messages": []any{map[string]any{"role": "user", "content": j.Prompt}},
	}
	for _, t := range j.Tools {
		body["tools"] = []any{map[string]any{"name": t.Name, "description": t.Description, "input_schema": t.Schema}}
	}
	if j.Schema != nil {
		body["output_config"] = map[string]any{"format": map[string]any{"type": "json_schema", "schema": j.Schema}}
	}
	if j.Thinking != nil {
		body["thinking"] = j.Thinking
	}
	b, err := json.Marshal(body)
	must(err)
	return b
}

// runInvoke adds the model's own events up, which InvokeModelWithResponseStream
// hands over as they are.
func runInvoke(ctx context.Context, j job) (reply, error) {
	c, done := j.bedrockClient()
	defer done()
	out, err := c.InvokeModelWithResponseStream(ctx, &bedrockruntime.InvokeModelWithResponseStreamInput{ModelId: aws.String(j.Model), Body: j.invokeBody()})
	if err != nil {
		return reply{Failure: bedrockFailure(err)}, nil
	}
	s := out.GetStream()
	defer s.Close()
	var m message
	of := map[int]int{} // block index to call
	for e := range s.Events() {
		if chunk, ok := e.(*types.ResponseStreamMemberChunk); ok {
			if err := addChunk(&m, of, chunk.Value.Bytes); err != nil {
				return reply{Message: m, Failure: &failure{Type: fmt.Sprintf("%T", err), Text: err.Error()}}, nil
			}
		}
	}
	return reply{Message: m, Failure: bedrockFailure(s.Err())}, nil
}

func addChunk(m *message, of map[int]int, chunk []byte) error {
	var e struct {
		Type  string
		Index int
		Block struct{ Type, ID, Name, Text string } `json:"content_block"`
		Delta struct {
			Text, Thinking string
			JSON           string `json:"partial_json"`
			Stop           string `json:"stop_reason"`
		}
	}
	if err := json.Unmarshal(chunk, &e); err != nil {
		return err
	}
	switch e.Type {
	case "message_start":
		m.Starts++
	case "content_block_start":
		m.Text += e.Block.Text
		if e.Block.Type == "tool_use" {
			of[e.Index] = len(m.Calls)
			m.Calls = append(m.Calls, call{ID: e.Block.ID, Name: e.Block.Name})
		}
	case "content_block_delta":
		m.Text, m.Reasoning = m.Text+e.Delta.Text, m.Reasoning+e.Delta.Thinking
		if e.Delta.JSON != "" {
			m.Calls[of[e.Index]].Args += e.Delta.JSON
		}
	case "message_delta":
		m.Finish = joinFinish(m.Finish, e.Delta.Stop)
		m.Usages++
	}
	return nil
}

// bedrockFailure tells an exception by its name, and the status it came under.
func bedrockFailure(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Type: fmt.Sprintf("%T", unjoin(err)), Text: err.Error()}
	var api smithy.APIError
	if errors.As(err, &api) {
		f.Type, f.Kind, f.Text = "smithy.APIError", api.ErrorCode(), api.ErrorMessage()
	}
	var res *awshttp.ResponseError
	if errors.As(err, &res) {
		f.Status = res.HTTPStatusCode()
	}
	return f
}
