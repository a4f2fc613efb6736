package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/proxy"
	"github.com/unbroken-llm/unbroken/upstream"
)

// provider is one upstream as it is configured.
type provider struct {
	proxy.Upstream
	engine           string
	credential       string
	credentialHeader string
	caFile           string
	cert, key        string
	from             origin            // of its first line
	at               map[string]origin // of its keys in the file
}

// origin is where a key of it comes from.
func (p *provider) origin(key string) origin {
	if at, ok := p.at[key]; ok {
		return at
	}
	return p.from
}

// upstreams is a value: NAME=URL, several of them separated by commas or spaces.
type upstreams struct{ list []*provider }

// set replaces the upstreams it names as a whole: a URL from one place never
// gets the credential of another.
func (u *upstreams) set(text string) error {
	for pair := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		name, url, ok := strings.Cut(pair, "=")
		if (!ok || name == "" || url == "") && strings.Contains(pair, "@") {
			return errors.New("is no upstream, and not shown, since it may hold a password: write NAME=URL, for instance local=http://127.0.0.1:8000/v1")
		}
		if !ok || name == "" || url == "" {
			return fmt.Errorf("%q is no upstream: write NAME=URL, for instance local=http://127.0.0.1:8000/v1", pair)
		}
		u.replace(name).URL = url
	}
	return nil
}

func (u *upstreams) String() string {
	var b strings.Builder
	for i, p := range u.list {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(p.Name + "=" + urlShown(p.URL))
	}
	return b.String()
}

func (u *upstreams) has(name string) bool {
	return slices.ContainsFunc(u.list, func(p *provider) bool { return p.Name == name })
}

// replace returns a new provider in the place of the one of that name.
func (u *upstreams) replace(name string) *provider {
	p := &provider{Upstream: proxy.Upstream{Name: name}, at: map[string]origin{}}
	for i := range u.list {
		if u.list[i].Name == name {
			u.list[i] = p
			return p
		}
	}
	u.list = append(u.list, p)
	return p
}

// fields is the table of an upstream's keys in the file, but for headers.
func (p *provider) fields(lookup func(string) (string, bool)) []field {
	return []field{
		{"url", "", "Base URL: https://, http:// or h2c://.", upstreamURL{&p.URL}, ""},
		{"dialect", "", "Protect only requests of this dialect; by default it follows the path.", choice{&p.Dialect, proxy.Dialects()}, ""},
		{"engine", "", "What serves the model, where the host does not tell.", choice{&p.engine, dialect.Engines()}, ""},
		{"credential", "", "Sent in place of the caller's: env:NAME, file:PATH or the secret itself.", secret{&p.credential, lookup}, ""},
		{"credential_header", "", "Its header; by default x-api-key for Anthropic, else Authorization, which gets \"Bearer \" in front.", freeText{&p.credentialHeader}, ""},
		{"host", "", "Host header, if it is not the URL's.", freeText{&p.Host}, ""},
		{"sni", "", "TLS server name, if it is not the URL's host.", freeText{&p.SNI}, ""},
		{"http1", "", "true: never HTTP/2.", boolean{&p.HTTP1}, ""},
		{"upgrade", "", "true: calls that do not stream are served from a stream, so that a break loses nothing; a route can say it, too.", boolean{&p.Upgrade}, ""},
		{"ca_file", "", "Certificates (PEM file) to trust for this upstream, besides the system's.", path{&p.caFile}, ""},
		{"client_cert", "", "Client certificate (PEM file); needs client_key.", path{&p.cert}, ""},
		{"client_key", "", "Its private key (PEM file).", path{&p.key}, ""},
	}
}

// upstreamURL is an upstream's URL. One that holds a credential is refused, and shown without it.
type upstreamURL struct{ p *string }

func (v upstreamURL) set(text string) error { *v.p = text; return nil }
func (v upstreamURL) String() string        { return urlShown(*v.p) }
func (upstreamURL) kind() string            { return "URL" }

// addHeader adds a header for every request to the upstream.
func (p *provider) addHeader(name, text string) error {
	if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(text) {
		return fmt.Errorf("%q is no valid header", name)
	}
	p.Header = append(p.Header, upstream.Field{Name: name, Value: text})
	return nil
}

// complete derives what follows from the plain settings of p. An error is about key.
func (p *provider) complete() (key string, err error) {
	if p.engine != "" {
		p.Abilities, _ = dialect.EngineRules(p.engine) // it is one of dialect.Engines
	}
	if p.credential == "" {
		if p.credentialHeader != "" {
			return "credential_header", fmt.Errorf("is set without a credential: set both or none")
		}
		return "", nil
	}
	name, text := p.credentialHeader, p.credential
	if name == "" {
		name = "Authorization"
		if p.Name == "anthropic" || strings.Contains(p.URL, "anthropic") {
			name = "x-api-key"
		} else if p.Name == "gemini" || strings.Contains(p.URL, "generativelanguage") {
			name = "x-goog-api-key"
		}
	}
	if strings.EqualFold(name, "Authorization") && !strings.Contains(text, " ") {
		text = "Bearer " + text
	}
	if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(text) {
		return "credential", fmt.Errorf("cannot be put into a header named %q: write the name of a header into credential_header, and a credential of visible characters", name)
	}
	p.Credential = upstream.Field{Name: name, Value: text}
	return "", nil
}
