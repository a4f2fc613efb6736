package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/golden"
	"github.com/unbroken-llm/unbroken/proxy"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/upstream"
)

func nothing() environment { return environment{out: io.Discard, err: io.Discard} }

// What is committed is what the program prints, and says what happens anyway.
func TestExampleFileIsTheDefaults(t *testing.T) {
	var b bytes.Buffer
	writeExample(&b)
	golden.Compare(t, "../../unbroken.example.yaml", b.Bytes())

	plain := load(nothing(), origin{}, nil)
	read := load(nothing(), origin{place: "--config", key: "../../unbroken.example.yaml"}, nil)
	if len(read.problems) > 0 {
		t.Fatalf("the example is refused:\n%v", read.problems)
	}
	for i := range plain.fields {
		f, g := &plain.fields[i], &read.fields[i]
		if f.value.String() != g.value.String() {
			t.Errorf("%s is %s, in the example %s", f.key, f.value, g.value)
		}
		if from := read.from[f.key]; f.def != "" && !strings.HasPrefix(from.place, "../../unbroken.example.yaml:") {
			t.Errorf("the example does not set %s: %v", f.key, from)
		}
	}
}

// uncommented is the example with what it only shows.
func uncommented(example string) string {
	return regexp.MustCompile(`(?m)^#(upstreams:|routes:|  )`).ReplaceAllString(example, "$1")
}

// The commented parts of the example are right too, once somebody needs them.
func TestExampleFileWithoutItsCommentMarks(t *testing.T) {
	var b bytes.Buffer
	writeExample(&b)
	text := uncommented(b.String())
	name := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := nothing()
	env.vars = []string{"LOCAL_API_KEY=sk-local"}
	l := load(env, origin{place: "--config", key: name}, nil)
	if len(l.problems) > 0 {
		t.Fatal(l.problems)
	}
	all := l.settings.upstreams.list
	local := all[slices.IndexFunc(all, func(p *provider) bool { return p.Name == "local" })]
	if got, want := local.Credential, (upstream.Field{Name: "Authorization", Value: "Bearer sk-local"}); got != want {
		t.Errorf("credential %v, want %v", got, want)
	}
	if got := local.Header.Get("X-Team"); got != "agents" {
		t.Errorf("X-Team is %q", got)
	}
	if a, ok := dialect.Match(local.Abilities, dialect.Endpoint{Dialect: "chat"}); !ok || !a.Flags.ContinueFinal {
		t.Errorf("abilities of vllm: %+v", local.Abilities)
	}
}

// A field that is forgotten in the table could not be configured, and a default
// that is forgotten there would be somebody else's.
func TestTableReachesEveryPlainValue(t *testing.T) {
	given := map[string]bool{ // set per request, or by wire; 0 by default
		"Relay.Anchor": true, "Relay.Sentinel": true, "Relay.Events": true, "Relay.Targets": true, "Relay.Seed": true,
		"Relay.Watch.Floor": true,
		"Upstreams":         true, "Routes": true, "AdoptRetriesOnly": true, "MaxPerCaller": true, "Client": true, "Store": true, "Ledger": true, "ScopeKey": true, "ScopeHeader": true, "Observer": true, "Log": true,
	}
	var walk func(prefix string, v reflect.Value)
	walk = func(prefix string, v reflect.Value) {
		for i := range v.NumField() {
			name := prefix + v.Type().Field(i).Name
			switch f := v.Field(i); {
			case given[name]:
			case f.Kind() == reflect.Struct:
				walk(name+".", f)
			case f.IsZero():
				t.Errorf("no setting reaches proxy.Config.%s", name)
			}
		}
	}
	walk("", reflect.ValueOf(load(nothing(), origin{}, nil).settings.proxy))
}

func TestNamesDeriveFromTheKey(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range fields(&settings{}, nil) {
		if !regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`).MatchString(f.key) || seen[f.key] || f.doc == "" {
			t.Errorf("key %q is ill-formed, repeated or unexplained", f.key)
		}
		seen[f.key] = true
	}
	f := field{key: "first_token"}
	if f.flag() != "first-token" || f.env() != "UNBROKEN_FIRST_TOKEN" {
		t.Errorf("%s, %s", f.flag(), f.env())
	}
}

func TestCredentialsGoWhereTheProviderLooksForThem(t *testing.T) {
	for _, tc := range []struct{ name, url, header, secret, want string }{
		{"openai", "https://api.openai.com", "", "sk-1", "Authorization: Bearer sk-1"},
		{"anthropic", "https://api.anthropic.com", "", "sk-1", "x-api-key: sk-1"},
		{"mine", "https://anthropic.example.com", "", "sk-1", "x-api-key: sk-1"},
		{"azure", "https://x.openai.azure.com", "api-key", "sk-1", "api-key: sk-1"},
		{"basic", "https://example.com", "Authorization", "Basic dTpw", "Authorization: Basic dTpw"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := provider{Upstream: proxy.Upstream{Name: tc.name, URL: tc.url}, credential: tc.secret, credentialHeader: tc.header}
			if _, err := p.complete(); err != nil {
				t.Fatal(err)
			}
			if got := p.Credential.Name + ": " + p.Credential.Value; got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
	for _, tc := range []struct {
		bad provider
		key string
	}{
		{provider{credentialHeader: "x-api-key"}, "credential_header"},
		{provider{credential: "a\x01b"}, "credential"},
		{provider{credential: "x", credentialHeader: "no header"}, "credential"},
	} {
		if key, err := tc.bad.complete(); err == nil || key != tc.key {
			t.Errorf("%+v: %s: %v", tc.bad, key, err)
		}
	}
}

func TestSpelling(t *testing.T) {
	l := load(nothing(), origin{}, nil)
	for _, f := range l.fields {
		if f.def != "" && f.value.String() != f.def {
			t.Errorf("%s: the default %s is spelled %s", f.key, f.def, f.value)
		}
	}
	var c relay.Config
	d := duration{p: &c.Hold, max: day}
	for text, want := range map[string]string{"1500ms": "1.5s", "90s": "90s", "2h": "2h", "1m": "60s", "0s": "0s"} {
		if err := d.set(text); err != nil || d.String() != want {
			t.Errorf("%s is spelled %s, want %s (%v)", text, d, want, err)
		}
	}
	z := size[int]{p: &c.MaxEvent, max: 1 << 40}
	for text, want := range map[string]string{"1024": "1KiB", "3 MiB": "3MiB", "1500B": "1500B", "2048MiB": "2GiB"} {
		if err := z.set(text); err != nil || z.String() != want {
			t.Errorf("%s is spelled %s, want %s (%v)", text, z, want, err)
		}
	}
}

func TestNearest(t *testing.T) {
	words := []string{"idle", "hold", "first_token", "listen"}
	for word, want := range map[string]string{
		"idel": "idle", "idl": "idle", "first-token": "first_token", "firsttoken": "first_token", "lsiten": "listen",
		"colour": "", "x": "", "": "",
	} {
		if got := nearest(word, words); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
}

func TestWireReadsTheFilesOfAnUpstream(t *testing.T) {
	dir := t.TempDir()
	if err := writeCertificate(dir); err != nil {
		t.Fatal(err)
	}
	text := "upstreams:\n  a:\n    url: https://example.com\n    ca_file: DIR/cert.pem\n    client_cert: DIR/cert.pem\n    client_key: DIR/key.pem\n  b: https://example.org\n"
	name := filepath.Join(dir, "a.yaml")
	if err := os.WriteFile(name, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	l := load(nothing(), origin{place: "--config", key: name}, nil)
	w := l.wire(io.Discard)
	if len(l.problems) > 0 {
		t.Fatal(l.problems)
	}
	byName := map[string]proxy.Upstream{}
	for _, u := range w.proxy.Upstreams {
		byName[u.Name] = u
	}
	if o := byName["a"].TLS; o == nil || o.RootCAs == nil || len(o.Certificates) != 1 {
		t.Errorf("the files did not arrive: %+v", o)
	}
	if byName["b"].TLS != nil {
		t.Error("what was told of a counts for b")
	}
	if byName["openai"].URL == "" || byName["anthropic"].URL == "" {
		t.Error("the upstreams that exist anyway are gone")
	}
}

func TestVersionLine(t *testing.T) {
	info := &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"},
	}}
	if got := versionLine(info, true); !strings.HasPrefix(got, "v1.2.3 (commit abc, 2026-01-02T03:04:05Z, modified, go1.") {
		t.Error(got)
	}
	if got := versionLine(nil, false); !strings.HasPrefix(got, "(devel) (commit unknown, date unknown, go1.") {
		t.Error(got)
	}
}
