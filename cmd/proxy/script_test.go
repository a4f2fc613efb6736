package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// patience is how long a script waits for something that must happen.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"unbroken": main})
}

// TestScripts runs the program as a user does. Besides testscript's own commands
// the scripts have cert.pem and key.pem for 127.0.0.1, and:
//
//	start NAME ARGS…          run unbroken in the background until it says that it is ready;
//	                          $NAME is then its base URL, $NAME_ADMIN that of the admin listener
//	logged NAME REGEXP        wait until it has logged that
//	signal NAME SIGNAL        TERM, INT or HUP
//	exited NAME CODE          wait for its end; its output is then stdout and stderr
//	http METHOD URL [HEADER:VALUE]… [@FILE]
//	                          stdout is the status and the body
//	becomes STATUS URL        ask until the status is that one
//	stream NAME URL FILE      POST the file, and return when content has come
//	streamed NAME             wait for its end; stdout is the body, stderr how it ended
//	documented FILE LISTENER ADMIN
//	                          the requests that a document shows are answered as it says
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Values[processes{}] = map[string]*process{}
			e.Values[streams{}] = map[string]*stream{}
			return writeCertificate(e.WorkDir)
		},
		Condition: func(cond string) (bool, error) {
			if cond == "devfull" {
				_, err := os.Stat("/dev/full")
				return err == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"start": start, "logged": logged, "signal": sendSignal, "exited": exited,
			"http": httpCmd, "becomes": becomes, "stream": streamCmd, "streamed": streamed,
			"documented": documented,
		},
		RequireUniqueNames: true,
	})
}

func want(ts *testscript.TestScript, neg bool, args []string, atLeast int) {
	if neg || len(args) < atLeast {
		ts.Fatalf("misused: give at least %d arguments, and no !", atLeast)
	}
}

func httpCmd(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2)
	req, err := http.NewRequest(args[0], args[1], nil)
	ts.Check(err)
	for _, a := range args[2:] {
		if file, ok := strings.CutPrefix(a, "@"); ok {
			req.Body = io.NopCloser(strings.NewReader(ts.ReadFile(file)))
			continue
		}
		name, text, _ := strings.Cut(a, ":")
		if name == "Host" {
			req.Host = text
		}
		req.Header.Set(name, text)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	res, err := client.Do(req)
	ts.Check(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%d\n%s", res.StatusCode, body)
}

func becomes(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	status := ""
	for end := time.Now().Add(patience); time.Now().Before(end); {
		res, err := client.Get(args[1])
		ts.Check(err)
		ts.Check(res.Body.Close())
		if status = strconv.Itoa(res.StatusCode); status == args[0] {
			return
		}
	}
	ts.Fatalf("%s stays %s", args[1], status)
}

type streams struct{}

// stream is a request whose answer is being read.
type stream struct {
	begun chan struct{}
	done  chan struct{}
	body  strings.Builder // once done
	err   error           // once done
}

var content = regexp.MustCompile(`"content":"|text_delta`)

func streamCmd(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 3)
	s := &stream{begun: make(chan struct{}), done: make(chan struct{})}
	ts.Value(streams{}).(map[string]*stream)[args[0]] = s
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	ts.Defer(func() { cancel(); <-s.done })
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, args[1], strings.NewReader(ts.ReadFile(args[2])))
	ts.Check(err)
	req.Header.Set("anthropic-version", "2023-06-01")
	req.Header.Set("x-api-key", "sk-test")
	req.Header.Set("Authorization", "Bearer sk-test")
	go s.read(req)
	select {
	case <-s.begun:
	case <-s.done:
		ts.Fatalf("no content came: %v\n%s", s.err, s.body.String())
	}
}

func (s *stream) read(req *http.Request) {
	defer close(s.done)
	res, err := http.DefaultClient.Do(req)
	if s.err = err; err != nil {
		return
	}
	defer res.Body.Close()
	in := bufio.NewReader(res.Body)
	for begun := false; ; {
		line, err := in.ReadString('\n')
		s.body.WriteString(line)
		if !begun && content.MatchString(line) {
			begun = true
			close(s.begun)
		}
		if err != nil {
			s.err = err
			return
		}
	}
}

func streamed(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1)
	s := ts.Value(streams{}).(map[string]*stream)[args[0]]
	if s == nil {
		ts.Fatalf("no stream %s", args[0])
	}
	<-s.done
	fmt.Fprint(ts.Stdout(), s.body.String())
	if s.err == io.EOF {
		fmt.Fprintln(ts.Stderr(), "ended politely")
	} else {
		fmt.Fprintln(ts.Stderr(), "broke:", s.err)
	}
}
