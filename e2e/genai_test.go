package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"google.golang.org/genai"
)

// genaiCall is a call with Google's Go SDK, and what closes its connections.
func (j job) genaiCall(ctx context.Context) (c *genai.Client, conf *genai.GenerateContentConfig, done func(), err error) {
	h := http.Header{}
	for k, v := range j.Headers {
		h.Set(k, v)
	}
	// A connection of its own: the SDK's default pool is the whole process's.
	tr := &http.Transport{DisableKeepAlives: true}
	c, err = genai.NewClient(ctx, &genai.ClientConfig{APIKey: "e2e", Backend: genai.BackendGeminiAPI,
		HTTPClient: &http.Client{Transport: tr}, HTTPOptions: genai.HTTPOptions{BaseURL: j.Base, Headers: h}})
	if err != nil {
		return nil, nil, nil, fmt.Errorf("genai: %w", err)
	}
	conf = &genai.GenerateContentConfig{MaxOutputTokens: int32(j.MaxTokens)}
	for _, t := range j.Tools {
		f := &genai.FunctionDeclaration{Name: t.Name, Description: t.Description, ParametersJsonSchema: t.Schema}
		conf.Tools = append(conf.Tools, &genai.Tool{FunctionDeclarations: []*genai.FunctionDeclaration{f}})
	}
	if j.Schema != nil {
		conf.ResponseMIMEType, conf.ResponseJsonSchema = "application/json", j.Schema
	}
	if j.Thinking != nil {
		conf.ThinkingConfig = &genai.ThinkingConfig{IncludeThoughts: true}
	}
	return c, conf, tr.CloseIdleConnections, nil
}

// runGenAI adds up the chunks.
func runGenAI(ctx context.Context, j job) (reply, error) {
	c, conf, done, err := j.genaiCall(ctx)
	if err != nil {
		return reply{}, err
	}
	defer done()
	var m message
	ids := map[string]bool{}
	for r, err := range c.Models.GenerateContentStream(ctx, j.Model, genai.Text(j.Prompt), conf) {
		if err != nil {
			return reply{Message: m, Failure: genaiFailure(err)}, nil
		}
		if r.ResponseID != "" {
			ids[r.ResponseID] = true
		}
		m.Starts = len(ids)
		for _, k := range r.Candidates {
			addCandidate(&m, k)
			// Usage is a running total; the one that counts is the finish's.
			if k.FinishReason != "" && r.UsageMetadata != nil {
				m.Usages++
			}
		}
	}
	return reply{Message: m}, nil
}

func addCandidate(m *message, k *genai.Candidate) {
	m.Finish = joinFinish(m.Finish, string(k.FinishReason))
	if k.Content == nil {
		return
	}
	for _, p := range k.Content.Parts {
		switch {
		case p.FunctionCall != nil:
			args, err := json.Marshal(p.FunctionCall.Args)
			must(err)
			m.Calls = append(m.Calls, call{p.FunctionCall.ID, p.FunctionCall.Name, string(args)})
		case p.Thought:
			m.Reasoning += p.Text
		default:
			m.Text += p.Text
		}
	}
}

func genaiFailure(err error) *failure {
	f := &failure{Type: fmt.Sprintf("%T", unjoin(err)), Text: err.Error()}
	if e, ok := errors.AsType[genai.APIError](err); ok {
		f.Type, f.Status, f.Kind = "genai.APIError", e.Code, e.Status
	}
	return f
}
