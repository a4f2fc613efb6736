package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/internal/snippet"
)

// However a file comes to be another one, it is noticed, once, when it is settled.
func TestChangesOfFiles(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	put := func(name, text string) {
		t.Helper()
		must(os.MkdirAll(filepath.Dir(at(name)), 0o700))
		must(os.WriteFile(at(name), []byte(text), 0o600))
	}
	put("v1/conf", "one")
	put("v2/conf", "one") // the same text: it is another file all the same
	put("plain", "one")
	must(os.Symlink("v1", at("data")))
	must(os.Symlink(filepath.Join("data", "conf"), at("conf")))
	c := &changes{}
	c.read([]string{at("plain"), at("conf"), at("absent")})
	if c.some() {
		t.Error("nothing has changed")
	}
	for _, tc := range []struct {
		name   string
		change func()
	}{
		{"written in place", func() { put("plain", "three") }},
		{"written with the same length", func() {
			put("plain", "seven")
			must(os.Chtimes(at("plain"), time.Time{}, time.Now().Add(time.Hour)))
		}},
		{"replaced", func() { put("new", "seven"); must(os.Rename(at("new"), at("plain"))) }},
		{"behind a symlink that turns", func() { must(os.Symlink("v2", at("next"))); must(os.Rename(at("next"), at("data"))) }},
		{"there at last", func() { put("absent", "x") }},
		{"gone", func() { must(os.Remove(at("absent"))) }},
	} {
		tc.change()
		if c.some() {
			t.Errorf("%s: told of before it was seen twice", tc.name)
		}
		if !c.some() {
			t.Errorf("%s: not told of", tc.name)
		}
		c.begin()
		c.read([]string{at("plain"), at("conf"), at("absent")})
		for range 2 { // what is new counts when it is seen unchanged
			if c.some() {
				t.Errorf("%s: told of again", tc.name)
			}
		}
	}
	put("plain", "unsettled, ")
	_ = c.some()
	put("plain", "unsettled, and more")
	if c.some() {
		t.Error("told of while it is being written")
	}
	c.begin()
	put("plain", "changed while it is read")
	c.read([]string{at("plain")})
	if _ = c.some(); !c.some() {
		t.Error("what changes while it is read is lost")
	}
}

// What is told of a change names the files. A pipe says nothing the second time, which was
// read as a configuration without a word in it: SIGHUP took every upstream away.
func TestReloadOfAPipe(t *testing.T) {
	dir := t.TempDir()
	pipe, secret := filepath.Join(dir, "pipe"), filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	said := make(chan error, 1)
	go func() { said <- os.WriteFile(pipe, []byte("drain: 33s\nadmin_token: file:"+secret), 0o600) }()
	reads := 0
	read := func() *loading {
		reads++
		return load(nothing(), origin{place: "--config", key: pipe}, nil)
	}
	r := newReloader(&house{log: slog.New(slog.DiscardHandler)}, read(), read)
	if err := <-said; err != nil {
		t.Fatal(err)
	}
	if got := r.current.settings.drain; got != 33*time.Second {
		t.Fatalf("the drain is %v", got)
	}
	if err := os.WriteFile(secret, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := r.files.which(); !slices.Equal(got, []string{secret}) {
		t.Errorf("changed: %v", got)
	}
	r.reload("a test")
	if st := r.state(); reads != 1 || st.Refused != 1 || len(st.Problems) != 1 || !strings.Contains(st.Problems[0], "is a pipe") {
		t.Errorf("read %d times: %+v", reads, st)
	}
}

// What a reload says has changed: keys, secrets among them, and never their values.
func TestDifferences(t *testing.T) {
	of := func(text string) *loading {
		l := load(nothing(), origin{place: "--config", key: writtenFile(t, text)}, nil)
		if len(l.problems) > 0 {
			t.Fatal(l.problems)
		}
		return l
	}
	base := of("upstreams: {a: {url: 'https://a.example', credential: one, headers: {X-A: b}}}\nadmin_token: first")
	for text, want := range map[string]string{
		"upstreams: {a: {url: 'https://a.example', credential: one, headers: {X-A: b}}}\nadmin_token: first":                                                  "",
		"upstreams: {a: {url: 'https://a.example', credential: two, headers: {X-A: c}}}\nadmin_token: second":                                                 "admin_token upstreams.a.credential upstreams.a.headers.X-A",
		"upstreams: {b: 'https://a.example'}\nadmin_token: first\nidle: 3s":                                                                                   "idle upstreams.a.credential upstreams.a.headers.X-A upstreams.a.url upstreams.b.url",
		"upstreams: {a: {url: 'https://a.example', credential: one, headers: {X-A: b}}}\nadmin_token: first\nroutes: [{model: x, targets: [a], upstream: a}]": "routes[0]",
		"upstreams: {a: {url: 'https://a.example', credential: one, headers: {X-A: b}}}\nadmin_token: first\nidle: 60s":                                       "",
	} {
		if got := strings.Join(differences(base, of(text)), " "); got != want {
			t.Errorf("%s\nchanged %q, want %q", text, got, want)
		}
	}
}

// A fixed setting that changes waits; one that is changed back waits no more.
func TestPendingSettings(t *testing.T) {
	of := func(text string) *loading {
		return load(nothing(), origin{place: "--config", key: writtenFile(t, text)}, nil)
	}
	r := &reloader{started: of("store: redis://:one@127.0.0.1:1\nseal_key: " + strings.Repeat("0f", 32))}
	for text, want := range map[string][]string{
		"store: redis://:one@127.0.0.1:1\nseal_key: " + strings.Repeat("0f", 32) + "\nidle: 3s":     {},
		"store: redis://:two@127.0.0.1:1\nseal_key: " + strings.Repeat("1f", 32):                    {"store", "seal_key"},
		"store: redis://:one@127.0.0.1:1\ntls_cert: a\ntls_key: b\nlisten: 127.0.0.1:9":             {"listen", "seal_key", "tls_cert"},
		"store: redis://:one@127.0.0.1:1\nseal_key: file:none\nlog_format: json\nmax_header: 64KiB": {"seal_key", "max_header", "log_format"},
	} {
		got := r.pending(of(text))
		slices.Sort(got)
		slices.Sort(want)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\nwaits: %v, want %v", text, got, want)
		}
	}
}

// The document names the settings that wait, all of them.
func TestDocumentNamesWhatIsFixed(t *testing.T) {
	doc, err := os.ReadFile("../../docs/CONFIG.md")
	if err != nil {
		t.Fatal(err)
	}
	part := regexp.MustCompile(`(?s)\*\*What cannot change\*\*.*?until the next start:(.*?)The rest`).FindStringSubmatch(string(doc))
	if part == nil {
		t.Fatal("the document does not say what cannot change")
	}
	var named, fixed []string
	for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(part[1], -1) {
		named = append(named, m[1])
	}
	for _, f := range fields(&settings{}, nil) {
		if f.fixed() {
			fixed = append(fixed, f.key)
		}
	}
	slices.Sort(named)
	slices.Sort(fixed)
	if !slices.Equal(named, fixed) {
		t.Errorf("the document names %v, fixed are %v", named, fixed)
	}
}

// What the document shows is what the program and the schema take, files and all.
func TestDocumentedConfigurations(t *testing.T) {
	blocks, err := snippet.Read("../../docs/CONFIG.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := writeCertificate(dir); err != nil {
		t.Fatal(err)
	}
	for name, as := range map[string]string{"ca.pem": "cert.pem", "models-ca.pem": "cert.pem", "client.pem": "cert.pem", "client.key": "key.pem", "tls.pem": "cert.pem", "tls.key": "key.pem"} {
		if err := os.Symlink(as, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	schema, n := schemaOfFile(t), 0
	for _, b := range blocks {
		if b.Lang != "yaml" {
			continue
		}
		n++
		if err := seen(t, schema, b.Text); err != nil {
			t.Errorf("line %d: %v", b.Line, err)
		}
		l := load(nothing(), origin{place: "--config", key: writtenFile(t, strings.ReplaceAll(b.Text, "/etc/unbroken/", dir+"/"))}, nil)
		l.wire(nothing().err)
		if len(l.problems) > 0 {
			t.Errorf("line %d: %v", b.Line, fmt.Sprint(l.problems))
		}
	}
	if n < 5 {
		t.Errorf("only %d configurations are shown", n)
	}
}

// A reload is one for each change: what was read is not read again, and what changed while
// it was read is.
func TestReloadReadsWhatItHasNotRead(t *testing.T) {
	name := writtenFile(t, "idle: soon")
	write := func(text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	meanwhile := func() {}
	read := func() *loading {
		l := load(nothing(), origin{place: "--config", key: name}, nil)
		meanwhile()
		return l
	}
	r := newReloader(&house{log: slog.New(slog.DiscardHandler)}, read(), read)
	write("idle: later")
	r.reload("a test")
	if st := r.state(); st.Refused != 1 || len(st.Problems) != 1 || st.RefusedAt == nil || !strings.Contains(st.Problems[0], "later") {
		t.Fatalf("%+v", st)
	}
	for range 2 {
		if r.files.some() {
			t.Error("what was read would be read again")
		}
	}
	meanwhile = func() { write("idle: a change that comes in between") }
	r.reload("a test")
	if r.files.some(); !r.files.some() {
		t.Error("what changed while it was read is lost")
	}
}

// A file without a key to blame is told of by its name and line alone, in the log as well.
func TestProblemsInTheLog(t *testing.T) {
	name := writtenFile(t, "")
	read := func() *loading { return load(nothing(), origin{place: "--config", key: name}, nil) }
	said := &log{changed: make(chan struct{})}
	r := newReloader(&house{log: slog.New(slog.NewTextHandler(said, nil))}, read(), read)
	for _, tc := range []struct {
		name, text string
		want       string
	}{
		{"no YAML", "idle: [", ` at=` + name + `:1 problem=`},
		{"no duration", "idle: soon", ` at=` + name + `:1 key=idle problem=`},
	} {
		if err := os.WriteFile(name, []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		before, _ := said.far()
		r.reload("a test")
		after, _ := said.far()
		if got := strings.TrimPrefix(after, before); !strings.Contains(got, tc.want) || strings.Contains(got, `=""`) {
			t.Errorf("%s: no %q in\n%s", tc.name, tc.want, got)
		}
	}
}

// An alert on refused reloads went quiet ten minutes later, with the file still refused: a
// count tells that something happened, not that it lasts. The gauge lasts as long as the file
// is bad, and ends with any good one, the one that was in force all along included.
func TestRefusedFileIsToldUntilItIsGood(t *testing.T) {
	t.Parallel()
	good, bad := "idle: 30s", "idle: soon"
	name := writtenFile(t, good)
	s := serveHere(t, breakable(t, 0), "--config", name)
	scrape := func() string { return answer(t, http.DefaultClient, s.admin+"/metrics") + "\n" }
	becomes := func(what, line string) {
		t.Helper()
		eventually(t, what+": "+line, func() bool { return strings.Contains(scrape(), "\n"+line+"\n") })
	}
	if text := scrape(); !strings.Contains(text, "\nunbroken_config_refused 0\n") {
		t.Fatalf("before anything changed:\n%s", text)
	}
	for n, step := range []struct {
		name   string
		change func() error
		want   int
	}{
		{"a bad file", func() error { return os.WriteFile(name, []byte(bad), 0o600) }, 1},
		{"what is in force, put back", func() error { return os.WriteFile(name, []byte(good), 0o600) }, 0},
		{"no file", func() error { return os.Rename(name, name+".away") }, 1},
		{"the very file, moved back", func() error { return os.Rename(name+".away", name) }, 0},
	} {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		var reloads int
		eventually(t, step.name+" is read", func() bool {
			reloads = 0
			for _, m := range reloadsCounted.FindAllStringSubmatch(scrape(), -1) {
				k, _ := strconv.Atoi(m[1])
				reloads += k
			}
			return reloads > n
		})
		becomes(step.name, fmt.Sprint("unbroken_config_refused ", step.want))
	}
}

var reloadsCounted = regexp.MustCompile(`(?m)^unbroken_config_reloads_total\{.*\} (\d+)$`)
