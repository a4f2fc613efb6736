package main

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// documented makes the requests that a document shows as curl's, in the order in which it shows
// them, and holds what it says of the answers against them:
//
//	documented FILE LISTENER ADMIN
//
// The document calls these localhost:8790 and localhost:8791. Behind "$ curl …" is the
// answer, with … for what is left out. $name in it is whatever is there, and in later
// commands what was there.
func documented(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 3)
	text, err := os.ReadFile(args[0]) // of the repository, not of the script
	ts.Check(err)
	vars := map[string]string{}
	n := 0
	for _, block := range consoles.FindAllStringSubmatch(string(text), -1) {
		var command string
		for line := range strings.Lines(block[1]) {
			line = strings.TrimSuffix(line, "\n")
			if cmd, ok := strings.CutPrefix(line, "$ curl "); ok {
				command = cmd
				continue
			}
			n++
			got := curl(ts, variable.ReplaceAllStringFunc(command, func(name string) string { return vars[name] }), args[1], args[2])
			names, pattern := answerPattern(line)
			found := pattern.FindStringSubmatch(got)
			if found == nil {
				ts.Fatalf("%s\nanswers\n%s\nnot\n%s", command, got, line)
			}
			for i, name := range names {
				vars[name] = found[i+1]
			}
		}
	}
	if n == 0 {
		ts.Fatalf("%s shows no requests", args[0])
	}
}

var (
	consoles = regexp.MustCompile("(?s)```console\n(.*?)```")
	variable = regexp.MustCompile(`\$[a-z]+`)
	words    = regexp.MustCompile(`'[^']*'|\S+`)
)

// answerPattern reads an answer as a document shows it.
func answerPattern(line string) (names []string, p *regexp.Regexp) {
	quoted := strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*?")
	text := regexp.MustCompile(`\\\$[a-z]+`).ReplaceAllStringFunc(quoted, func(name string) string {
		names = append(names, name[1:])
		return `([\w~.-]+)`
	})
	return names, regexp.MustCompile("(?s)^" + text)
}

// curl makes the request that curl would.
func curl(ts *testscript.TestScript, command, listener, admin string) string {
	req, err := http.NewRequest(http.MethodGet, "", nil)
	ts.Check(err)
	list := words.FindAllString(command, -1)
	for i := 0; i < len(list); i++ {
		word := func() string { i++; return strings.Trim(list[i], "'") }
		switch list[i] {
		case "-s", "-sN":
		case "-X":
			req.Method = word()
		case "-H":
			name, value, _ := strings.Cut(word(), ": ")
			req.Header.Set(name, value)
		case "-d":
			req.Body = io.NopCloser(strings.NewReader(word()))
			if req.Method == http.MethodGet {
				req.Method = http.MethodPost
			}
		default:
			at := strings.NewReplacer("localhost:8790", listener, "localhost:8791", admin).Replace(list[i])
			req.URL, err = req.URL.Parse(at)
			ts.Check(err)
		}
	}
	res, err := (&http.Client{Timeout: patience}).Do(req)
	ts.Check(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	ts.Check(err)
	return string(body)
}
