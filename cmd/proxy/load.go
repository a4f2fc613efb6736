package main

import (
	"fmt"
	"strings"
)

// given is a flag that was set; a repeated one has several texts.
type given struct {
	key   string
	texts []string
}

// loading builds the settings.
//
// Precedence, lowest first: the defaults of the table, the file, the
// environment, the flags. Every key remembers where its value came from.
type loading struct {
	settings *settings
	fields   []field
	from     map[string]origin
	problems problems
	env      environment
	name     string   // of the file; "" for none
	files    []string // what was read, or was to be
	// unread is why nothing of the file is known, if so; text is what could be read.
	unread problems
	text   []byte
}

// load returns the settings, and every problem there is with them. The settings
// are usable only if there is none.
func load(env environment, file origin, flags []given) *loading {
	l := &loading{settings: &settings{}, from: map[string]origin{}, env: env, name: file.key}
	l.fields = fields(l.settings, env.lookup)
	for i := range l.fields {
		if f := &l.fields[i]; f.def != "" {
			l.set(f, f.def, origin{key: f.key})
		}
	}
	if file.key != "" {
		l.file(file)
	}
	l.environ()
	for _, g := range flags {
		f := l.field(g.key)
		for _, text := range g.texts {
			l.set(f, text, origin{place: "--" + f.flag()})
		}
	}
	l.validate()
	return l
}

// configFile says which file is to be read; its key is the name, "" for none.
func configFile(env environment, flag string) origin {
	if flag != "" {
		return origin{"--config", flag}
	}
	if name, _ := env.lookup(envConfig); name != "" {
		return origin{envConfig, name}
	}
	return origin{}
}

func (l *loading) field(key string) *field {
	for i := range l.fields {
		if l.fields[i].key == key {
			return &l.fields[i]
		}
	}
	return nil
}

func (l *loading) set(f *field, text string, from origin) {
	if f.key == keyRoutes && l.from[f.key] != from {
		l.settings.routes.list = nil // those of one place count
	}
	if err := f.value.set(text); err != nil {
		l.report(from, err.Error())
		return
	}
	l.from[f.key] = from
	l.note(f.value, text)
	for _, p := range l.settings.upstreams.list {
		if p.from == (origin{}) { // it came with this text
			p.from = from
		}
	}
	for _, r := range l.settings.routes.list {
		if r.from == (origin{}) {
			r.from = from
		}
	}
}

// note remembers the file that a value names.
func (l *loading) note(v value, text string) {
	switch v.(type) {
	case path:
	case secret, sealKeys:
		name, isFile := strings.CutPrefix(text, "file:")
		if !isFile {
			return
		}
		text = name
	default:
		return
	}
	if text != "" {
		l.files = append(l.files, text)
	}
}

func (l *loading) report(at origin, what string) {
	l.problems = append(l.problems, problem{at, what})
}

// environ applies the environment. A variable that nearly has one of our names
// is a slip; others with our prefix belong to somebody else, such as those that
// Kubernetes makes for a service called unbroken.
func (l *loading) environ() {
	names := []string{envConfig}
	known := map[string]bool{envConfig: true}
	for i := range l.fields {
		f := &l.fields[i]
		names, known[f.env()] = append(names, f.env()), true
		if text, ok := l.env.lookup(f.env()); ok && text != "" {
			l.set(f, text, origin{place: f.env()})
		}
	}
	for _, v := range l.env.vars {
		name, text, _ := strings.Cut(v, "=")
		if text == "" || !strings.HasPrefix(name, envPrefix) || known[name] {
			continue
		}
		if c := nearest(strings.TrimPrefix(name, envPrefix), trimmed(names)); c != "" {
			l.report(origin{place: name}, "unknown variable; did you mean "+envPrefix+c+"?")
		}
	}
}

func trimmed(names []string) []string {
	short := make([]string, len(names))
	for i, n := range names {
		short[i] = strings.TrimPrefix(n, envPrefix)
	}
	return short
}

// file applies a file.
func (l *loading) file(from origin) {
	name := from.key
	l.files = append(l.files, name)
	var entries []entry
	if l.text, l.unread = readFile(name); l.unread == nil {
		entries, l.unread = keysOf(name, l.text)
	}
	l.problems = append(l.problems, l.unread...)
	keys := make([]string, len(l.fields))
	for i := range l.fields {
		keys[i] = l.fields[i].key
	}
	for _, e := range entries {
		at := origin{fmt.Sprintf("%s:%d", name, e.line), e.key}
		f := l.field(e.key)
		switch {
		case f == nil:
			l.report(at, "unknown key"+or(didYouMean(e.key, keys), "; unbroken check --example shows those that exist"))
		case e.key == keyUpstreams:
			l.providers(name, e)
		case e.key == keyRoutes:
			l.routesOf(name, e)
		case e.kind != "scalar":
			l.report(at, "must be one value, not a "+e.kind)
		case e.text == "" && f.def != "":
			l.report(at, "has no value: remove the key to get the default, "+f.def)
		default:
			l.set(f, e.text, at)
		}
	}
}

// providers applies the upstreams of a file.
func (l *loading) providers(name string, all entry) {
	if all.kind != "mapping" && all.text != "" || all.kind == "list" {
		l.report(origin{fmt.Sprintf("%s:%d", name, all.line), all.key}, "must be a mapping of names to URLs, for instance openai: https://api.openai.com")
		return
	}
	for _, e := range all.kids {
		at := origin{fmt.Sprintf("%s:%d", name, e.line), keyUpstreams + "." + e.key}
		p := l.settings.upstreams.replace(e.key)
		p.from, l.from[keyUpstreams] = at, at
		switch {
		case e.kind == "scalar":
			p.URL = e.text
		case e.kind == "mapping":
			l.provider(name, p, e)
		default:
			l.report(at, "must be a URL or a mapping, not a "+e.kind)
		}
	}
}

// provider applies one upstream of a file.
func (l *loading) provider(name string, p *provider, e entry) {
	table := p.fields(l.env.lookup)
	keys := []string{"headers"}
	for i := range table {
		keys = append(keys, table[i].key)
	}
next:
	for _, k := range e.kids {
		at := origin{fmt.Sprintf("%s:%d", name, k.line), keyUpstreams + "." + e.key + "." + k.key}
		p.at[k.key] = at
		if k.key == "headers" {
			l.headers(name, at, p, k)
			continue
		}
		for i := range table {
			if table[i].key != k.key {
				continue
			}
			l.note(table[i].value, k.text)
			l.scalar(at, k, table[i].value)
			continue next
		}
		l.report(at, "unknown key"+or(didYouMean(k.key, keys), ": an upstream has "+strings.Join(keys, ", ")))
	}
}

func (l *loading) headers(name string, at origin, p *provider, all entry) {
	if all.kind != "mapping" {
		l.report(at, "must be a mapping of header names to values, for instance X-Team: agents")
		return
	}
	for _, h := range all.kids {
		there := origin{fmt.Sprintf("%s:%d", name, h.line), at.key + "." + h.key}
		p.at["headers."+h.key] = there
		if h.kind != "scalar" {
			l.report(there, "must be one value, not a "+h.kind)
			continue
		}
		l.note(secret{}, h.text)
		text, err := disclose(h.text, l.env.lookup)
		if err == nil {
			err = p.addHeader(h.key, text)
		}
		if err != nil {
			l.report(there, err.Error())
		}
	}
}
