package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/unbroken-llm/unbroken/proxy"
)

// journey is one route as it is configured.
type journey struct {
	proxy.Route
	from origin            // of its first line
	at   map[string]origin // of its keys: "targets[1].upstream"
}

// origin is where a key of route n comes from.
func (j *journey) origin(n int, key string) origin {
	at := j.from
	for k := key; k != ""; {
		if there, ok := j.at[k]; ok {
			at = there
			break
		}
		k = k[:max(0, strings.LastIndexByte(k, '.'))]
	}
	if at.key != "" { // it is in a file; a flag or a variable has no keys
		at.key = fmt.Sprintf("%s[%d].%s", keyRoutes, n, key)
	}
	return at
}

// routes is a value: MODEL=UPSTREAM,UPSTREAM/MODEL, several of them separated by
// spaces. Those of a flag or a variable stand in place of the file's.
type routes struct{ list []*journey }

func (r *routes) set(text string) error {
	for word := range strings.FieldsSeq(text) {
		model, list, ok := strings.Cut(word, "=")
		if !ok || model == "" || list == "" {
			return fmt.Errorf("%q is no route: write MODEL=UPSTREAM,UPSTREAM/MODEL, for instance gpt-*=openai,backup/gpt-4o", word)
		}
		j := &journey{Route: proxy.Route{Model: model}}
		for t := range strings.SplitSeq(list, ",") {
			up, name, _ := strings.Cut(t, "/")
			j.Targets = append(j.Targets, proxy.RouteTarget{Upstream: up, Model: name})
		}
		r.list = append(r.list, j)
	}
	return nil
}

func (r *routes) String() string {
	words := make([]string, len(r.list))
	for i, j := range r.list {
		targets := make([]string, len(j.Targets))
		for n, t := range j.Targets {
			targets[n] = t.Upstream
			if t.Model != "" {
				targets[n] += "/" + t.Model
			}
		}
		words[i] = j.Model + "=" + strings.Join(targets, ",")
	}
	return strings.Join(words, " ")
}

func (r *routes) kind() string { return "MODEL=UPSTREAM,…" }

// fields is the table of a route's keys in the file, but for targets.
func (j *journey) fields() []field {
	clock := func(p *time.Duration) value { return duration{p, 10 * ms, day, true} }
	return []field{
		{"model", "", "Pattern of the model name.", path{&j.Model}, ""},
		{"upstream", "", "The upstream that a request names, by its path; by default the one at the root.", path{&j.Upstream}, ""},
		{"first_token", "", "In place of the common one.", clock(&j.FirstToken), ""},
		{"idle", "", "In place of the common one.", clock(&j.Idle), ""},
		{"progress", "", "In place of the common one.", clock(&j.Progress), ""},
		{"floor", "", "In place of the common one.", count{&j.Floor, 0, 1 << 30, false}, ""},
		{"floor_span", "", "In place of the common one.", duration{&j.FloorSpan, ms, day, false}, ""},
		{"background", "", "true: OpenAI Responses run in the background, so that a cut loses nothing. The provider stores them for some minutes.", boolean{&j.Background}, ""},
		{"upgrade", "", "true: calls that do not stream are served from a stream, so that a break loses nothing.", boolean{&j.Upgrade}, ""},
	}
}

// exampleRoutes is what the example file says about routes.
const exampleRoutes = `#routes:
#  - model: claude-*
#    # Each is an upstream or a mapping; the caller's model name goes on unless another is given.
#    targets:
#      - anthropic
#      - upstream: anthropic
#        model: claude-sonnet-4-5
#    # Of this route only; also idle, progress, floor and floor_span.
#    first_token: 15s
`

// routesOf applies the routes of a file.
func (l *loading) routesOf(name string, all entry) {
	at := origin{fmt.Sprintf("%s:%d", name, all.line), all.key}
	if all.kind != "list" {
		if all.kind != "scalar" || all.text != "" {
			l.report(at, "must be a list, for instance - {model: gpt-*, targets: [openai, backup]}")
		}
		return
	}
	l.settings.routes.list, l.from[keyRoutes] = nil, at
	for _, e := range all.kids {
		j := &journey{from: origin{fmt.Sprintf("%s:%d", name, e.line), e.key}, at: map[string]origin{}}
		l.settings.routes.list = append(l.settings.routes.list, j)
		if e.kind != "mapping" {
			l.report(j.from, "must be a mapping with model and targets")
			continue
		}
		l.journey(name, j, e)
	}
}

// journey applies one route of a file.
func (l *loading) journey(name string, j *journey, e entry) {
	table := j.fields()
	keys := []string{"targets"}
	for i := range table {
		keys = append(keys, table[i].key)
	}
next:
	for _, k := range e.kids {
		at := origin{fmt.Sprintf("%s:%d", name, k.line), e.key + "." + k.key}
		j.at[k.key] = at
		if k.key == "targets" {
			l.targets(name, j, at, k)
			continue
		}
		for i := range table {
			if table[i].key == k.key {
				l.scalar(at, k, table[i].value)
				continue next
			}
		}
		l.report(at, "unknown key"+or(didYouMean(k.key, keys), ": a route has "+strings.Join(keys, ", ")))
	}
}

func (l *loading) scalar(at origin, e entry, v value) {
	if e.kind != "scalar" {
		l.report(at, "must be one value, not a "+e.kind)
	} else if err := v.set(e.text); err != nil {
		l.report(at, err.Error())
	}
}

// targets applies the targets of one route.
func (l *loading) targets(name string, j *journey, list origin, all entry) {
	if all.kind != "list" {
		l.report(list, "must be a list of upstreams, for instance [openai, backup]")
		return
	}
	route := strings.TrimSuffix(list.key, all.key)
	for _, e := range all.kids {
		at := origin{fmt.Sprintf("%s:%d", name, e.line), route + e.key}
		j.at[e.key] = at
		var t proxy.RouteTarget
		switch e.kind {
		case "scalar":
			t.Upstream = e.text
		case "mapping":
			l.target(name, j, at, e, &t)
		default:
			l.report(at, "must be an upstream or a mapping, not a "+e.kind)
		}
		j.Targets = append(j.Targets, t)
	}
}

func (l *loading) target(name string, j *journey, whole origin, e entry, t *proxy.RouteTarget) {
	for _, k := range e.kids {
		at := origin{fmt.Sprintf("%s:%d", name, k.line), whole.key + "." + k.key}
		j.at[e.key+"."+k.key] = at
		switch k.key {
		case "upstream":
			l.scalar(at, k, path{&t.Upstream})
		case "model":
			l.scalar(at, k, path{&t.Model})
		case "for":
			l.scalar(at, k, path{&t.For})
		default:
			l.report(at, "unknown key"+or(didYouMean(k.key, []string{"upstream", "model", "for"}), ": a target has upstream, model, for"))
		}
	}
}
