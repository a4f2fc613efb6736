package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/openai/openai-go/v3"
	"google.golang.org/genai"

	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/proxy"
)

// ordinary is one way to make a call that does not stream. What it returns is what
// the SDK returns.
type ordinary struct {
	name   string
	speaks faultinject.Dialect
	call   func(context.Context, job) (any, error)
	only   []string // scenarios; empty: all
	n      int      // choices
}

var ordinaries = []ordinary{
	{name: "openai-go chat", speaks: faultinject.Chat, call: ordinaryChat},
	{name: "openai-go chat, several choices", speaks: faultinject.Chat, call: ordinaryChat, n: 3, only: []string{"text", "tool"}},
	{name: "openai-go responses", speaks: faultinject.Responses, call: func(ctx context.Context, j job) (any, error) {
		c := j.openaiClient()
		return c.Responses.New(ctx, j.responses())
	}},
	{name: "openai-go completions", speaks: faultinject.Completions, only: texts, call: func(ctx context.Context, j job) (any, error) {
		c := j.openaiClient()
		return c.Completions.New(ctx, openai.CompletionNewParams{Model: openai.CompletionNewParamsModel(j.Model), MaxTokens: openai.Int(int64(j.MaxTokens)),
			Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String(j.Prompt)}})
	}},
	{name: "anthropic-sdk-go", speaks: faultinject.Messages, call: func(ctx context.Context, j job) (any, error) {
		c, params := j.anthropicCall()
		return c.Messages.New(ctx, params)
	}},
	{name: "genai-go", speaks: faultinject.Gemini, call: func(ctx context.Context, j job) (any, error) {
		c, conf, done, err := j.genaiCall(ctx)
		if err != nil {
			return nil, err
		}
		defer done()
		return c.Models.GenerateContent(ctx, j.Model, genai.Text(j.Prompt), conf)
	}},
	{name: "aws-sdk-go converse", speaks: faultinject.Converse, call: func(ctx context.Context, j job) (any, error) {
		c, done := j.bedrockClient()
		defer done()
		in := j.converse()
		return c.Converse(ctx, &bedrockruntime.ConverseInput{ModelId: in.ModelId, Messages: in.Messages, InferenceConfig: in.InferenceConfig,
			ToolConfig: in.ToolConfig, OutputConfig: in.OutputConfig, AdditionalModelRequestFields: in.AdditionalModelRequestFields})
	}},
	{name: "aws-sdk-go invoke", speaks: faultinject.Invoke, call: func(ctx context.Context, j job) (any, error) {
		c, done := j.bedrockClient()
		defer done()
		out, err := c.InvokeModel(ctx, &bedrockruntime.InvokeModelInput{ModelId: aws.String(j.Model), Body: j.invokeBody()})
		if err != nil {
			return nil, err
		}
		var answer any
		err = json.Unmarshal(out.Body, &answer)
		return answer, err
	}},
}

func ordinaryChat(ctx context.Context, j job) (any, error) {
	c := j.openaiClient()
	return c.Chat.Completions.New(ctx, j.chat())
}

// ordinaryNode are those that run in Node.
func ordinaryNode(t *testing.T) (list []ordinary) {
	n := startNode(t)
	for _, c := range []struct {
		name   string
		speaks faultinject.Dialect
	}{
		{"genai 3 generateContent", faultinject.Gemini},
		{"genai 2 generateContent", faultinject.Gemini},
		{"aws 3 Converse", faultinject.Converse},
	} {
		list = append(list, ordinary{name: c.name, speaks: c.speaks, call: func(ctx context.Context, j job) (any, error) {
			j.Client = c.name
			r, err := n.run(ctx, j)
			if err == nil && r.Failure != nil {
				err = fmt.Errorf("%+v", *r.Failure)
			}
			return r.Message.Value, err
		}})
	}
	return list
}

// meets reports whether a scenario can be asked for so.
func (o ordinary) meets(sc *scenario) bool {
	return len(o.only) == 0 || slices.Contains(o.only, sc.name)
}

// ask makes the call at a stage and returns the plain value of what the SDK returned.
func (o ordinary) ask(t *testing.T, st *stage, sc *scenario, script string) (any, []faultinject.Exchange) {
	t.Helper()
	var got any
	out, err := st.play(t, client{name: o.name, speaks: o.speaks, run: func(ctx context.Context, j job) (reply, error) {
		if j.Choices = o.n; o.speaks == faultinject.Completions {
			j.Model = "gpt-3.5-turbo-instruct"
		}
		v, err := o.call(ctx, j)
		if got = plainly(reflect.ValueOf(v)); err != nil {
			err = fmt.Errorf("%s: %w", o.name, err)
		}
		return reply{}, err
	}}, sc, script)
	if err != nil {
		t.Fatal(err)
	}
	return got, out.exchanges
}

// newUpgrader is a proxy in front of p that serves ordinary calls from streams.
func newUpgrader(t *testing.T, p *stage) *stage {
	var cfg proxy.Config
	for _, name := range []string{"openai", "anthropic", "gemini", "bedrock"} {
		u := proxy.Upstream{Name: name, URL: p.provider.URL(), Upgrade: true}
		if name == "gemini" {
			u.Abilities = trailing
		}
		cfg.Upstreams = append(cfg.Upstreams, u)
	}
	return &stage{p.provider, serve(t, cfg)}
}

// An SDK returns of an upgraded call what it returns of the same call at the provider
// itself, and the same again when the stream under it breaks. The differences that
// docs/DIALECTS.md lists are left out of the comparison: usage and timing behind a
// break, and what no two answers share.
func TestUpgradedCallsReturnTheSame(t *testing.T) {
	ordinaries := ordinaries
	if !testing.Short() {
		ordinaries = append(slices.Clone(ordinaries), ordinaryNode(t)...)
	}
	direct := newProvider(t, faultinject.OpenAI)
	for _, o := range ordinaries {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			st := newUpgrader(t, direct)
			for _, sc := range scenarios {
				if !o.meets(sc) {
					continue
				}
				want, seen := o.ask(t, direct, sc, "")
				if streamed(seen[0]) || want == nil {
					t.Fatalf("%s: the call streams by itself", sc.name)
				}
				got, seen := o.ask(t, st, sc, "")
				if len(seen) != 1 || !streamed(seen[0]) {
					t.Errorf("%s: the provider saw: %s", sc.name, story(seen))
				}
				if d := differ("", without(want, unshared), without(got, unshared)); d != "" {
					t.Errorf("%s: %s", sc.name, d)
				}
				for _, cut := range o.cuts(sc) {
					got, seen := o.ask(t, st, sc, "attempt 1: pace 1ms; rst "+cut)
					if len(seen) != 2 || !seen[0].Applied || !streamed(seen[1]) {
						t.Errorf("%s, rst %s: the provider saw: %s", sc.name, cut, story(seen))
					}
					if d := differ("", without(want, unshared|counted), without(got, unshared|counted)); d != "" {
						t.Errorf("%s, rst %s: %s", sc.name, cut, d)
					}
				}
			}
		})
	}
}

// cuts are the places where the stream under a call is cut; without -clients.full
// one. Behind a whole call the turn would end with it (DESIGN §3, R2), which is
// another answer.
func (o ordinary) cuts(sc *scenario) []string {
	place := (&fault{script: "CUT"}).line(sc, o.speaks)
	if sc.then == toolUse {
		place = "after text 2"
	}
	if !*full {
		return []string{place}
	}
	return []string{place, "after event 1", "after text 2", "in text 3"}
}

// streamed reports whether an exchange asked for a stream.
func streamed(x faultinject.Exchange) bool {
	return strings.Contains(x.Path, ":streamGenerateContent") || strings.HasSuffix(x.Path, "-stream") || strings.Contains(string(x.Body), `"stream":true`)
}
