package faultinject

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"github.com/unbroken-llm/unbroken/internal/bedrocksdk"
)

func bedrockClient(t *testing.T, s *Server, scenario string) *bedrockruntime.Client {
	t.Helper()
	c, done := bedrocksdk.New(s.URL(), http.Header{HeaderScenario: {scenario}}, bedrocksdk.Once)
	t.Cleanup(done)
	return c
}

func asks(text string) []types.Message {
	return []types.Message{{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: text}}}}
}

// The SDK of AWS reads every scenario, streamed and whole, and reads the same.
func TestBedrockSDKReadsEveryScenario(t *testing.T) {
	s := start(t, Config{LongTokens: 60})
	for _, scenario := range ScenarioNames() {
		c := bedrockClient(t, s, scenario)
		a, _ := Scenario(scenario, Prompt{Dialect: Converse, Turns: []Turn{{Role: "user", Text: "Tell me a long story of something."}}}, Config{LongTokens: 60})
		var want []string // text and calls
		for _, k := range a.without(CustomBlock, SearchBlock, CodeBlock).Blocks {
			switch k.Kind {
			case TextBlock, RefusalBlock:
				want = append(want, k.Text)
			case ToolBlock:
				want = append(want, k.Name)
			}
		}
		out, err := c.ConverseStream(t.Context(), &bedrockruntime.ConverseStreamInput{ModelId: aws.String(bedrockClaude), Messages: asks("Tell me a long story of something.")})
		if err != nil {
			t.Fatalf("%s: %v", scenario, err)
		}
		streamed, stop := readConverseStream(out.GetStream())
		if err := out.GetStream().Err(); err != nil || strings.Join(streamed, "|") != strings.Join(want, "|") || string(stop) != converseFinish(a.Finish) {
			t.Errorf("%s: %v %s %q, want %q", scenario, err, stop, streamed, want)
		}
		whole, err := c.Converse(t.Context(), &bedrockruntime.ConverseInput{ModelId: aws.String(bedrockClaude), Messages: asks("Tell me a long story of something.")})
		if err != nil {
			t.Fatalf("%s: %v", scenario, err)
		}
		if got := readWhole(whole); strings.Join(got, "|") != strings.Join(want, "|") || whole.StopReason != stop || *whole.Usage.TotalTokens < 2 {
			t.Errorf("%s: %v %q, want %q", scenario, whole.StopReason, got, want)
		}
		said, err := c.InvokeModel(t.Context(), &bedrockruntime.InvokeModelInput{ModelId: aws.String(bedrockClaude), Body: []byte(invokeBody([]string{msg("user", "Tell me a long story of something.")}))})
		if err != nil {
			t.Fatalf("%s: %v", scenario, err)
		}
		var m struct {
			Model   string
			Content []struct{ Type, Text, Name string }
		}
		if err := json.Unmarshal(said.Body, &m); err != nil || m.Model != "claude-sonnet-4-5-20250929" || len(m.Content) != len(a.without(CustomBlock, SearchBlock, CodeBlock).Blocks) {
			t.Errorf("%s: %v %s", scenario, err, said.Body)
		}
	}
}

func readConverseStream(s *bedrockruntime.ConverseStreamEventStream) (said []string, stop types.StopReason) {
	defer s.Close()
	open := int32(-1) // the block of the last text
	for e := range s.Events() {
		switch e := e.(type) {
		case *types.ConverseStreamOutputMemberContentBlockStart:
			said = append(said, *e.Value.Start.(*types.ContentBlockStartMemberToolUse).Value.Name)
		case *types.ConverseStreamOutputMemberContentBlockDelta:
			if text, ok := e.Value.Delta.(*types.ContentBlockDeltaMemberText); ok {
				if *e.Value.ContentBlockIndex != open {
					open, said = *e.Value.ContentBlockIndex, append(said, "")
				}
				said[len(said)-1] += text.Value
			}
		case *types.ConverseStreamOutputMemberMessageStop:
			stop = e.Value.StopReason
		}
	}
	return said, stop
}

func readWhole(out *bedrockruntime.ConverseOutput) (said []string) {
	for _, b := range out.Output.(*types.ConverseOutputMemberMessage).Value.Content {
		switch b := b.(type) {
		case *types.ContentBlockMemberText:
			said = append(said, b.Value)
		case *types.ContentBlockMemberToolUse:
			said = append(said, *b.Value.Name)
		}
	}
	return said
}

// It raises its own types, from a status and from the middle of a stream.
func TestBedrockSDKKnowsTheErrors(t *testing.T) {
	for _, script := range []string{"attempt *: status 429", "attempt *: error rate-limit after text 3"} {
		c := bedrockClient(t, start(t, Config{Script: MustScript(script)}), "text")
		out, err := c.ConverseStream(t.Context(), &bedrockruntime.ConverseStreamInput{ModelId: aws.String(bedrockClaude), Messages: asks("Go.")})
		if err == nil {
			readConverseStream(out.GetStream())
			err = out.GetStream().Err()
		}
		var busy *types.ThrottlingException
		if !errors.As(err, &busy) || *busy.Message != "Too many requests, please wait before trying again." {
			t.Errorf("%s: %v", script, err)
		}
	}
}
