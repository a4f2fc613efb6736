package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	complaints "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/unbroken-llm/unbroken/faultinject"
)

// browser is a page of a real Chromium, and what it complained about.
type browser struct {
	*testing.T
	ctx context.Context

	mu   sync.Mutex
	said []string
}

// openBrowser skips without Chromium, or fails if UNBROKEN_REQUIRE names chromium.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		if strings.Contains(os.Getenv("UNBROKEN_REQUIRE"), "chromium") {
			t.Fatal("UNBROKEN_REQUIRE asks for a real Chromium, but there is none")
		}
		t.Skip("no chromium here (apt-get install chromium); UNBROKEN_REQUIRE=chromium makes this a failure")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.Flag("no-proxy-server", true), chromedp.WSURLReadTimeout(time.Minute))...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &browser{T: t, ctx: ctx}
	if err := chromedp.Listen(ctx, func(e any) {
		switch e := e.(type) {
		case *runtime.EventExceptionThrown:
			b.complain(e.ExceptionDetails.Text)
		case *complaints.EventEntryAdded: // violations of the policy too
			b.complain(e.Entry.Text + " " + e.Entry.URL)
		case *page.EventJavascriptDialogOpening:
			b.complain("a dialog: " + e.Message)
		}
	}); err != nil {
		t.Fatalf("start %s: %v", program, err)
	}
	return b
}

func (b *browser) complain(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said = append(b.said, what)
}

// quiet fails the test if the browser complained, or shows what is no text.
func (b *browser) quiet() {
	b.Helper()
	if is[bool](b, `/\[object|undefined|NaN/.test(document.body.innerText)`) {
		b.Errorf("the page says:\n%s", is[string](b, `document.body.innerText`))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.said {
		b.Error("the browser complains: " + c)
	}
	b.said = nil
}

func (b *browser) do(what string, a ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, a...); err != nil {
		b.Fatalf("%s: %v", what, err)
	}
}

// until waits for an expression to be true in the page. It is asked from here: what
// polls inside the page would break the page's policy.
func (b *browser) until(what, expression string) {
	b.Helper()
	for end := time.Now().Add(30 * time.Second); !is[bool](b, "Boolean("+expression+")"); {
		if time.Now().After(end) {
			b.Fatalf("%s: not within 30 s; the page says:\n%s", what, is[string](b, `document.body.innerText`))
		}
		<-time.After(50 * time.Millisecond)
	}
}

// is what an expression is in the page.
func is[V any](b *browser, expression string) V {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[V](expression))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return v
}

// shoot keeps a picture of the page in UNBROKEN_SCREENSHOTS, if that names a directory.
func (b *browser) shoot(name string, width, height int64, scheme string) {
	b.Helper()
	b.do("the window", chromedp.EmulateViewport(width, height))
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
		b.Fatal(err)
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.Fatal(err)
	}
	if over := is[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
		b.Errorf("%s: at %d pixels the page is %d too wide", name, width, over)
	}
	if dir := os.Getenv("UNBROKEN_SCREENSHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), png, 0o644); err != nil {
			b.Error(err)
		}
	}
}

// pictures takes the page light and dark, narrow and wide.
func (b *browser) pictures(name string) {
	b.Helper()
	for _, scheme := range []string{"light", "dark"} {
		b.shoot(name, 1200, 1500, scheme)
		b.shoot(name, 390, 844, scheme)
	}
}

// served is a proxy in this process, as its command would serve it.
type served struct {
	front, admin string
	said         *log
	stop         func()
}

// serveHere serves until stop, or the test's end. The provider breaks as its requests ask.
func serveHere(t *testing.T, provider *faultinject.Server, more ...string) *served {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	done := make(chan int, 1)
	args := append([]string{"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--drain", "0s", "--upstream", "openai=" + provider.URL(), "--upstream", "anthropic=" + provider.URL()}, more...)
	said := &log{changed: make(chan struct{})}
	go func() {
		done <- run(ctx, environment{args: args, out: in, err: said})
		in.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	base, admin := baseURL.FindStringSubmatch(line), adminURL.FindStringSubmatch(line)
	s := &served{said: said, stop: sync.OnceFunc(func() {
		cancel()
		go func() { _, _ = io.Copy(io.Discard, out) }()
		if code := <-done; code != 0 {
			text, _ := said.far()
			t.Errorf("serve ended with %d:\n%s", code, text)
		}
	})}
	t.Cleanup(s.stop)
	if err != nil || base == nil || admin == nil {
		t.Fatalf("serve says %q, %v", line, err)
	}
	s.front, s.admin = base[1], admin[1]
	return s
}

func breakable(t *testing.T, pace time.Duration) *faultinject.Server {
	t.Helper()
	p, err := faultinject.New(faultinject.Config{Pace: pace})
	if err != nil {
		t.Fatal(err)
	}
	p.Start()
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// turn asks for one turn that breaks as told, and returns its whole body.
func (s *served) turn(ctx context.Context, model, run, scenario, script string) (string, error) {
	body, err := json.Marshal(map[string]any{"model": model, "stream": true, "messages": []map[string]string{{"role": "user", "content": "go"}}, "tools": anyTool(scenario)})
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, "POST", s.front+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	for name, v := range faultHeaders(run, scenario, script) {
		r.Header.Set(name, v)
	}
	r.Header.Set("X-Run-Id", run)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	return string(got), err
}

func anyTool(scenario string) any {
	if scenario == "text" {
		return nil
	}
	var tools []any
	for _, name := range []string{"get_weather", "read_file", "search"} {
		tools = append(tools, map[string]any{"type": "function", "function": map[string]any{"name": name, "parameters": map[string]any{"type": "object"}}})
	}
	return tools
}

const live = `document.querySelector("#link")?.dataset.state === "ok"`

// The page as a person uses it: nothing happens; a stream breaks and heals; what
// clients call things stays text; the proxy is started anew; only keys are used.
func TestStatusPage(t *testing.T) {
	b := openBrowser(t)
	provider := breakable(t, 0)
	s := serveHere(t, provider)
	b.do("open", chromedp.EmulateViewport(1200, 900), chromedp.Navigate(s.admin+"/"))
	b.until("the page is live", live)
	b.until("nothing has broken", `!document.querySelector("#feed-none").hidden`)
	b.pictures("idle")

	b.do("the first tab stop", chromedp.KeyEvent("\t"))
	if got := is[string](b, `document.activeElement.className`); got != "skip" {
		t.Errorf("the first tab stop is %q", got)
	}
	b.do("skip", chromedp.KeyEvent("\r"))
	if got := is[string](b, `document.activeElement.id`); got != "main" {
		t.Errorf("the skip link leads to %q", got)
	}

	if _, err := s.turn(t.Context(), "gpt-4.1", "cut-once", "text", "attempt 1: rst after text 16"); err != nil {
		t.Fatal(err)
	}
	b.until("the recovery is told", `[...document.querySelectorAll("#feed li")].some(l => /connection reset/.test(l.innerText) && /R1 continue/.test(l.innerText) && /seam/.test(l.innerText) && /tokens saved/.test(l.innerText) && /healed/.test(l.innerText))`)
	b.until("the tile counts it", `[...document.querySelectorAll(".tile")].some(x => /Healed turns\s+1/.test(x.innerText))`)

	hostile := `<img src=x onerror=alert(1)>`
	if _, err := s.turn(t.Context(), hostile, `x<script>alert(2)<script>`, "text", "attempt 1: rst after text 3"); err != nil {
		t.Fatal(err)
	}
	b.until("the model's name is text", fmt.Sprintf(`document.querySelector("#feed").innerText.includes(%q)`, hostile))
	// A model's name that turns the direction of writing had its breaker's state read backwards.
	if _, err := s.turn(t.Context(), "gpt-\u202edesolc", "turned-round", "text", "attempt 1: rst after text 3"); err != nil {
		t.Fatal(err)
	}
	b.until("no name turns the text around it", `document.querySelector("#feed").innerText.includes("gpt-\ufffddesolc") && document.querySelector("#upstreams").innerText.includes("gpt-\ufffddesolc") && !/\p{Bidi_Control}/u.test(document.documentElement.outerHTML)`)
	if n := is[int](b, `document.querySelectorAll("main img, main script, #feed script").length`); n != 0 {
		t.Errorf("%d elements were made of what a client chose", n)
	}
	b.quiet()

	where := strings.TrimPrefix(s.admin, "http://")
	s.stop()
	b.until("the page says that the proxy is away", `document.querySelector("#link").dataset.state === "lost"`)
	serveHere(t, provider, "--admin", where)
	b.until("it is live again", live)
	b.until("it says so", `/started anew/.test(document.querySelector("#feed-note").innerText) && document.querySelectorAll("#feed li.before").length === 3`)
}

// With a token the page asks for it, and shows nothing before.
func TestStatusPageAsksForTheToken(t *testing.T) {
	b := openBrowser(t)
	s := serveHere(t, breakable(t, 0), "--admin-token", "opensesame")
	b.do("open", chromedp.Navigate(s.admin+"/status"))
	b.until("it asks", `!document.querySelector("#ask").hidden && document.querySelector("#overview").hidden`)
	b.do("a wrong one", chromedp.SendKeys("#token", "wrong\r"))
	b.until("it says so", `/not the token/.test(document.querySelector("#denied").innerText)`)
	b.do("the right one", chromedp.SendKeys("#token", "opensesame\r"))
	b.until("it shows", live+` && !document.querySelector("#overview").hidden`)
	b.do("once more", chromedp.Reload())
	b.until("this tab remembers", live)
}

// The page tells what is in force since when, what waits for a restart, and why a changed
// file was refused, in words that stay text.
func TestStatusPageTellsOfTheConfiguration(t *testing.T) {
	b := openBrowser(t)
	name := writtenFile(t, "idle: 30s")
	s := serveHere(t, breakable(t, 0), "--config", name)
	change := func(text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const section, word = `document.querySelector("#config").innerText`, `document.querySelector("#config-word")`
	b.do("open", chromedp.EmulateViewport(1200, 900), chromedp.Navigate(s.admin+"/status"))
	b.until("it names the file, and nothing waits", fmt.Sprintf(`%s.includes(%q) && /none yet/.test(%[1]s) && /restart\s+nothing/.test(%[1]s) && %[3]s.hidden`, section, name, word))

	change("idle: 40s\nmax_header: 48KiB")
	b.until("the change was taken, and a part of it waits", `/1 taken, 0 refused/.test(`+section+`) && /max_header/.test(`+section+`) && /1 changed setting waits for a restart/.test(`+word+`.innerText)`)
	b.pictures("pending")

	hostile := `<img src=x onerror=alert(1)>`
	change("idle: '" + hostile + "'\nheders: 3s")
	b.until("the change was refused, and why", fmt.Sprintf(`/1 taken, 1 refused/.test(%s) && %[1]s.includes(%q) && %[1]s.includes("did you mean headers?") && /refused/.test(%[3]s.innerText)`, section, hostile, word))
	if n := is[int](b, `document.querySelectorAll("main img").length`); n != 0 {
		t.Errorf("%d elements were made of what a file says", n)
	}
	b.pictures("refused")
	b.do("see why, by keys", chromedp.Focus("#config-word a"), chromedp.KeyEvent("\r"))
	b.until("the section is reached", `location.hash === "#config" && document.activeElement.id === "config" && !document.querySelector("#overview").hidden`)

	change("idle: 30s")
	b.until("all is well again", `/2 taken, 1 refused/.test(`+section+`) && `+word+`.hidden && document.querySelectorAll("#config li").length === 0`)
	b.quiet()
}

// A run's view tells its steps, its batch, and what recovery would do and why.
func TestStatusPageShowsARun(t *testing.T) {
	b := openBrowser(t)
	s := serveHere(t, breakable(t, 0))
	if _, err := s.turn(t.Context(), "gpt-4.1", "night-shift-7", "parallel", "attempt 1: cut after tool 2"); err != nil {
		t.Fatal(err)
	}
	b.do("open", chromedp.EmulateViewport(1200, 900), chromedp.Navigate(s.admin+"/status#runs"))
	b.until("the run is listed", `/night-shift-7/.test(document.querySelector("#runs table")?.innerText)`)
	b.do("follow the link by keys", chromedp.Focus(`#runs table a`), chromedp.KeyEvent("\r"))
	b.until("its batch is shown", `/batch open/.test(document.querySelector("#runs .step")?.innerText) && document.querySelectorAll("#runs .step tbody tr").length > 0`)
	b.until("and what recovery would do", `document.querySelector("#runs .advice .chip")?.innerText.length > 2 && document.querySelectorAll("#runs .step td .chip.key").length > 0`)
	b.until("and what was done already", `/R2/.test(document.querySelector("#runs .feed")?.innerText)`)
	b.pictures("run")
	b.do("back", chromedp.Focus(`#runs a`), chromedp.KeyEvent("\r"))
	b.until("the list is back", `location.hash === "#runs" && document.querySelector("#runs table a")`)
	b.quiet()
}

// An outage: some streams break and heal, some wait, one provider is given up on.
func TestStatusPageInAnOutage(t *testing.T) {
	b := openBrowser(t)
	s := serveHere(t, breakable(t, 40*time.Millisecond))
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for i, script := range []string{
		"attempt 1: rst after text 16", "attempt 1: error overloaded after text 8", "attempt 1: polite after text 20", "attempt 1: garbage after text 12",
		"attempt 1: rst after text 9 | attempt 2: rst after text 4", "every stream: status 503", "attempt 1: rst after text 4 | attempt 2: status 503 | attempt 3: stall 30s after text 0",
		"every stream: pass; pace 2s", "attempt 1: rst after text 6 | attempt 2: stall 30s after text 1", "every stream: pass; pace 1s",
	} {
		all.Go(func() {
			_, _ = s.turn(ctx, []string{"gpt-4.1", "gpt-4.1-mini", "o4"}[i%3], fmt.Sprintf("drill-%02d", i), "text", script) // some are to fail
		})
	}
	b.do("open", chromedp.EmulateViewport(1200, 900), chromedp.Navigate(s.admin+"/status"))
	b.until("streams are recovering", `[...document.querySelectorAll("#live tbody tr")].some(r => /recovering/.test(r.innerText))`)
	b.until("others have healed", `[...document.querySelectorAll("#feed li")].filter(l => /healed/.test(l.innerText)).length >= 3`)
	b.until("some have ended", `[...document.querySelectorAll(".tile")].some(x => /Healed turns\s+[3-9]/.test(x.innerText))`)
	b.until("breakers are told by model", `/gpt-4.1: (closed|open|half-open)/.test(document.querySelector("#upstreams").innerText)`)
	b.pictures("outage")
	b.quiet()
}
