package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/faultinject"
)

// binary is the proxy as people run it.
func binary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "unbroken")
	out, err := exec.Command("go", "build", "-o", path, "../cmd/proxy").CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// redisServer starts a real Redis, without persistence, and returns its URL.
func redisServer(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		if strings.Contains(os.Getenv("UNBROKEN_REQUIRE"), "redis") {
			t.Fatal("UNBROKEN_REQUIRE asks for a real Redis, but there is no redis-server")
		}
		t.Skip("no redis-server here (apt-get install redis-server); UNBROKEN_REQUIRE=redis makes this a failure")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	_, port, _ := net.SplitHostPort(addr)
	cmd := exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for end := time.Now().Add(patience); ; {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
			return "redis://" + addr
		}
		if time.Now().After(end) {
			t.Fatal("redis-server does not answer")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// replicaProcess is one running proxy.
type replicaProcess struct {
	cmd  *exec.Cmd
	base string
	log  *bytes.Buffer
	once sync.Once
}

func serveProcess(t *testing.T, path, store, upstream string, more ...string) *replicaProcess {
	t.Helper()
	r := &replicaProcess{log: &bytes.Buffer{}}
	r.cmd = exec.Command(path, "serve", "--listen", "127.0.0.1:0", "--admin", "off", "--store", store,
		"--ack-wait", "2s", "--upstream", "openai="+upstream, "--upstream", "anthropic="+upstream)
	r.cmd.Args = append(r.cmd.Args, more...)
	r.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	r.cmd.Stderr = r.log
	out, err := r.cmd.StdoutPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.kill)
	line, _ := bufio.NewReader(out).ReadString('\n')
	_, after, ok := strings.Cut(line, "ANTHROPIC_BASE_URL=")
	if !ok {
		r.kill()
		t.Fatalf("the proxy does not serve: %q\n%s", line, r.log)
	}
	r.base, _, _ = strings.Cut(strings.TrimSpace(after), " ")
	return r
}

// kill is kill -9.
func (r *replicaProcess) kill() {
	r.once.Do(func() { _ = r.cmd.Process.Kill(); _ = r.cmd.Wait() })
}

// deathPhase is where in a turn the process dies.
type deathPhase struct {
	name   string
	answer string
	script string
	seen   string // what the client has read by then; "": nothing
	// hits is how many requests the provider has had by then.
	hits int
	// same: what was asked for before the death is enough, nothing is repaid.
	same bool
}

var deathPhases = []deathPhase{
	{name: "head held", answer: "tool", script: "attempt 1: stall after event 1", hits: 1},
	{name: "text", answer: "tool", script: "attempt 1: stall after text 4", seen: "text", hits: 1},
	{name: "inside a call", answer: "tool", script: "attempt 1: stall after tool-args 2", seen: "text", hits: 1},
	{name: "call durable", answer: "tool", script: "attempt 1: stall before finish", seen: "call", hits: 1, same: true},
	{name: "finish sent", answer: "tool", script: "attempt 1: stall after finish", seen: "finish", hits: 1, same: true},
	{name: "recovery waiting", answer: "tool", script: "attempt 1: rst after text 4|attempt 2: status 529 retry-after 50", seen: "text", hits: 2},
	{name: "seam open", answer: "tool", script: "attempt 1: rst after text 4|attempt 2: seam echo-tail 30; stall after text 1", seen: "text", hits: 2},
}

// A proxy is killed with -9 in each phase of a turn, and the client asks another
// replica, which shares nothing with it but Redis: the message is the one it would
// have been, the calls are those that the client saw.
func TestKilledProcessTurnsGoOnElsewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("processes are killed")
	}
	redis, path := redisServer(t), binary(t)
	provider := newProvider(t, faultinject.OpenAI).provider
	two := serveProcess(t, path, redis, provider.URL())
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-18s %-9s %9s %9s %12s  %s\n", "killed at", "dialect", "attempts", "seen", "repaid", "message")
	for _, ph := range deathPhases {
		for _, d := range []string{"chat", "messages"} {
			t.Run(ph.name+", "+d, func(t *testing.T) {
				one := serveProcess(t, path, redis, provider.URL())
				row := dieAndAskAgain(t, &ph, d, provider, one, two)
				fmt.Fprintf(&table, "%-18s %-9s %s\n", ph.name, d, row)
			})
		}
	}
	t.Log(table.String())
}

// Two replicas are asked for the same turn while it runs: the provider is asked
// once, both clients read the text, and the newer one alone gets the call. Twins
// without ids stay apart.
func TestOneTurnOnTwoReplicas(t *testing.T) {
	if testing.Short() {
		t.Skip("processes are started")
	}
	redis, path := redisServer(t), binary(t)
	provider := newProvider(t, faultinject.OpenAI).provider
	replicas := [2]*replicaProcess{serveProcess(t, path, redis, provider.URL()), serveProcess(t, path, redis, provider.URL())}
	for _, d := range []string{"chat", "messages"} {
		t.Run(d, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			ph := &deathPhase{answer: "tool"}
			run := fmt.Sprintf("twice-%s-%d", d, turns.Add(1))
			type end struct {
				h   heardTurn
				err error
			}
			began, older := make(chan struct{}), make(chan end, 1)
			var once sync.Once
			go func() {
				h, err := askTurn(ctx, replicas[0].base, d, "Twice.", run, ph, "attempt *: pace 150ms", func(h *heardTurn) bool {
					if h.text != "" {
						once.Do(func() { close(began) })
					}
					return false
				})
				older <- end{h, err}
			}()
			select {
			case <-began:
			case e := <-older:
				t.Fatalf("the older connection got %v, %v", e.h, e.err)
			}
			h, err := askTurn(ctx, replicas[1].base, d, "Twice.", run, ph, "attempt *: pace 150ms", nil)
			if err != nil || len(h.calls) != 1 || h.finish == "" {
				t.Errorf("the newer connection got %v, %v\n%s", h, err, replicas[1].log)
			}
			o := <-older
			if o.err == nil || len(o.h.calls) > 0 || o.h.finish != "" || o.h.text != h.text {
				t.Errorf("the older connection got %v, %v; the newer %v", o.h, o.err, h)
			}
			n := 0
			for _, x := range provider.Log() {
				if x.Header.Get(faultinject.HeaderTurn) == run {
					n++
				}
			}
			if n != 1 {
				t.Errorf("the provider was asked %d times", n)
			}
		})
	}
}

// A replica is told to go while many turns run, and its drain is too short for
// them: every client that retries once, at the replica that is left, has its turn.
func TestRollingRestartLosesNoTurn(t *testing.T) {
	if testing.Short() {
		t.Skip("processes are started")
	}
	const clients = 16
	redis, path := redisServer(t), binary(t)
	provider := newProvider(t, faultinject.OpenAI).provider
	one := serveProcess(t, path, redis, provider.URL(), "--drain", "50ms")
	two := serveProcess(t, path, redis, provider.URL())
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ph := &deathPhase{answer: "tool"}
	began := make(chan struct{}, clients)
	cut := make(chan bool, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			d := []string{"chat", "messages"}[i%2]
			prompt, run := fmt.Sprintf("Client %d.", i), fmt.Sprintf("rolling-%d-%d", i, turns.Add(1))
			want, err := askTurn(ctx, two.base, d, prompt, run+"-uncut", ph, "", nil)
			if err != nil {
				t.Errorf("client %d, undisturbed: %v", i, err)
			}
			var once sync.Once
			first, err := askTurn(ctx, one.base, d, prompt, run, ph, "attempt *: pace 250ms", func(h *heardTurn) bool {
				if h.text != "" {
					once.Do(func() { began <- struct{}{} })
				}
				return false
			})
			once.Do(func() { began <- struct{}{} })
			cut <- err != nil
			got := first
			if err != nil {
				got, err = askTurn(ctx, two.base, d, prompt, run, ph, "", nil)
			}
			if err != nil || got.String() == "" || got.text != want.text || got.finish != want.finish || len(got.calls) != len(want.calls) {
				t.Errorf("client %d got %v, %v; undisturbed it is %v", i, got, err, want)
			}
		})
	}
	for range clients {
		<-began
	}
	if err := one.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	n := 0
	for range clients {
		if <-cut {
			n++
		}
	}
	if n == 0 {
		t.Error("no stream was cut: this tests nothing")
	}
	t.Logf("%d of %d streams were cut and carried on elsewhere", n, clients)
}

// heardTurn is what a client has read of a stream.
type heardTurn struct {
	text, finish string
	calls        map[int]string // id, name and arguments
}

func (h heardTurn) String() string { return fmt.Sprintf("%q %v %s", h.text, h.calls, h.finish) }

func (h *heardTurn) line(line string) {
	data, ok := strings.CutPrefix(line, "data: ")
	if !ok {
		return
	}
	var e struct {
		Index   int
		Choices []struct {
			Delta struct {
				Content string
				Calls   []struct {
					Index    int
					ID       string
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
			Finish string `json:"finish_reason"`
		}
		Block struct{ ID, Name, Type string } `json:"content_block"`
		Delta struct {
			Text string
			JSON string `json:"partial_json"`
			Stop string `json:"stop_reason"`
		}
	}
	if json.Unmarshal([]byte(data), &e) != nil {
		return
	}
	if h.calls == nil {
		h.calls = map[int]string{}
	}
	for _, c := range e.Choices {
		h.text += c.Delta.Content
		h.finish += c.Finish
		for _, call := range c.Delta.Calls {
			h.calls[call.Index] += call.ID + call.Function.Name + call.Function.Arguments
		}
	}
	h.text += e.Delta.Text
	h.finish += e.Delta.Stop
	if e.Block.Type == "tool_use" || e.Delta.JSON != "" {
		h.calls[e.Index] += e.Block.ID + e.Block.Name + e.Delta.JSON
	}
}

func (h *heardTurn) has(what string) bool {
	switch what {
	case "":
		return true
	case "text":
		return h.text != ""
	case "call":
		return len(h.calls) > 0
	}
	return h.finish != ""
}

func takeoverAsk(d, prompt string) (path, body string) {
	schema := string(weatherTool.Schema)
	if d == "chat" {
		return "/v1/chat/completions", `{"model":"gpt-4.1","stream":true,"messages":[{"role":"user","content":"` + prompt + `"}],"tools":[{"type":"function","function":{"name":"get_weather","description":"The weather","parameters":` + schema + `}}]}`
	}
	return "/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":4096,"stream":true,"messages":[{"role":"user","content":"` + prompt + `"}],"tools":[{"name":"get_weather","description":"The weather","input_schema":` + schema + `}]}`
}

// askTurn sends a turn's request and reads on until enough was heard, or to the end.
func askTurn(ctx context.Context, base, d, prompt, run string, ph *deathPhase, script string, enough func(*heardTurn) bool) (h heardTurn, err error) {
	path, body := takeoverAsk(d, prompt)
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, base+path, strings.NewReader(body))
	if err != nil {
		return h, err
	}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "Authorization": "Bearer k", "x-api-key": "k", "anthropic-version": "2023-06-01",
		faultinject.HeaderScenario: ph.answer, faultinject.HeaderTurn: run, "X-Run-Id": run,
	} {
		q.Header.Set(k, v)
	}
	if script != "" {
		q.Header.Set(faultinject.HeaderScript, script)
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(q)
	if err != nil {
		return h, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(res.Body)
		return h, fmt.Errorf("status %d: %s", res.StatusCode, b)
	}
	lines := bufio.NewReader(res.Body)
	for {
		line, err := lines.ReadString('\n')
		h.line(strings.TrimRight(line, "\r\n"))
		if err == io.EOF {
			return h, nil
		}
		if err != nil || enough != nil && enough(&h) {
			return h, err
		}
	}
}

func dieAndAskAgain(t *testing.T, ph *deathPhase, d string, provider *faultinject.Server, one, two *replicaProcess) string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	prompt := "This is the case of " + ph.name + "."
	run := fmt.Sprintf("%s-%s-%d", strings.ReplaceAll(ph.name, " ", "-"), d, turns.Add(1))
	want, err := askTurn(ctx, two.base, d, prompt, run+"-uncut", ph, "", nil)
	if err != nil || want.finish == "" || len(want.calls) == 0 {
		t.Fatalf("the turn that nobody disturbs is %v, %v", want, err)
	}
	type end struct {
		h   heardTurn
		err error
	}
	reached, ended := make(chan struct{}), make(chan end, 1)
	go func() {
		told := false
		h, err := askTurn(ctx, one.base, d, prompt, run, ph, ph.script, func(h *heardTurn) bool {
			if !told && ph.seen != "" && h.has(ph.seen) {
				told = true
				close(reached)
			}
			return false
		})
		ended <- end{h, err}
	}()
	if ph.seen != "" {
		select {
		case <-reached:
		case e := <-ended:
			t.Fatalf("before the phase was reached: %v, %v\n%s", e.h, e.err, one.log)
		}
	}
	mine := func(l []faultinject.Exchange) (xs []faultinject.Exchange) {
		for _, x := range l {
			if x.Header.Get(faultinject.HeaderTurn) == run {
				xs = append(xs, x)
			}
		}
		return xs
	}
	if _, err := provider.WaitLog(ctx, func(l []faultinject.Exchange) bool {
		return len(mine(l)) == ph.hits
	}); err != nil {
		t.Fatalf("the provider has not come so far: %v", err)
	}
	one.kill()
	first := <-ended
	if first.h.finish == "" && first.err == nil {
		t.Fatalf("the killed proxy's stream ended well: %v", first.h)
	}
	got, err := askTurn(ctx, two.base, d, prompt, run, ph, "", nil)
	if err != nil {
		t.Fatalf("the retry: %v\n%s", err, two.log)
	}
	if got.text != want.text || got.finish != want.finish || len(got.calls) != len(want.calls) {
		t.Errorf("the retry got %v\nuncut it is %v", got, want)
	}
	if !strings.HasPrefix(got.text, first.h.text) {
		t.Errorf("the client had read %q, the retry begins %q", first.h.text, got.text)
	}
	for i, call := range first.h.calls {
		if !strings.HasPrefix(got.calls[i], call) { // its last bytes may have died with the process
			t.Errorf("the client had seen call %s, the retry has %s", call, got.calls[i])
		}
	}
	list, err := provider.WaitLog(ctx, func(l []faultinject.Exchange) bool {
		for _, x := range mine(l) {
			if x.Ending == "" {
				return false
			}
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	xs := mine(list)
	repaid := 0
	for _, x := range xs[1:] {
		if x.Status == http.StatusOK {
			repaid += len(x.Body) / 4 // about four bytes a token
		}
	}
	if ph.same && len(xs) != ph.hits {
		t.Errorf("the provider was asked %d times: %s", len(xs), story(xs))
	}
	return fmt.Sprintf("%9d %7d B ~%4d tokens  as uncut", len(xs), len(first.h.text), repaid)
}
