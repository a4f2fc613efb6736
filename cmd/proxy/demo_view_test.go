package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

func TestBreakLines(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"at a blank", "one two three", []string{"one two", "three"}},
		{"a word that is too long", "abcdefghijk", []string{"abcdefgh", "ijk"}},
		{"wide letters", "東京東京東", []string{"東京東京", "東"}},
		{"a blank just behind the edge", "one four five", []string{"one four", "five"}},
		{"lines of its own", "a\n\nb", []string{"a", "", "b"}},
		{"nothing", "", []string{""}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, p := range breakLines(tc.text, 8) {
				got = append(got, p.text)
				if !strings.HasPrefix(tc.text[p.at:], p.text) {
					t.Errorf("%q is not at %d", p.text, p.at)
				}
			}
			if strings.Join(got, "|") != strings.Join(tc.want, "|") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// stroke is what a frame is made of: colours, and lines. Whatever else a terminal
// would obey has come in with the text.
var stroke = regexp.MustCompile("\x1b\\[[0-9]*m|\x1b\\[[HK]|\r\n|" + regexp.QuoteMeta(enter) + "|" + regexp.QuoteMeta(leave))

// strokeless draws one frame and takes the strokes out.
func strokeless(t *testing.T, v *view, b *bytes.Buffer) []string {
	t.Helper()
	b.Reset()
	v.draw()
	lines := strings.Split(b.String(), "\r\n")
	for i, l := range lines {
		lines[i] = stroke.ReplaceAllString(l, "")
		if strings.ContainsFunc(lines[i], func(r rune) bool { return r < ' ' }) {
			t.Errorf("line %d is more than text: %q", i, lines[i])
		}
		if n := columns(lines[i]); n > viewWidth {
			t.Errorf("line %d is %d columns wide: %q", i, n, lines[i])
		}
	}
	if len(lines) != viewHeight {
		t.Errorf("the frame has %d lines", len(lines))
	}
	return lines
}

func TestViewFitsATerminal(t *testing.T) {
	var b bytes.Buffer
	v := &view{w: &b, size: func() (int, int) { return viewWidth, viewHeight }}
	hostile := "\x1b]0;owned\a\x1b[2J" + strings.Repeat("東京🙂", 40)
	v.begin(1, 1, scene{provider: hostile, turn: hostile, model: hostile})
	for _, w := range []way{straight, healing} {
		v.start(w)
		for range 30 {
			v.say("word \x1b[5A" + strings.Repeat("x", 90) + hostile + "\n")
		}
		v.tell([]fact{{"cut", hostile}, {"plan", hostile}, {"seam", hostile}, {"gap", hostile}, {"paid again", hostile}})
		v.verdict(w == healing, hostile)
	}
	strokeless(t, v, &b)
}

// What came behind the cut is told from what came before it.
func TestViewShowsTheSeam(t *testing.T) {
	var b bytes.Buffer
	v := &view{w: &b, size: func() (int, int) { return viewWidth, viewHeight }}
	v.begin(1, 4, scenes[0])
	v.start(healing)
	v.say("under")
	v.tell([]fact{{"cut", "connection_reset"}})
	v.say(" an old oak")
	v.tell([]fact{{"cut", "connection_reset"}, {"gap", "31 ms"}})
	if got := b.String(); !strings.Contains(got, " under\x1b["+green+"m an old oak"+reset) {
		t.Errorf("the seam is nowhere:\n%q", got)
	}
	lines := strings.Join(strokeless(t, v, &b), "\n")
	for _, want := range []string{"1/4  OpenAI Chat Completions, text turn", "│  under an old oak", "gap        31 ms"} {
		if !strings.Contains(lines, want) {
			t.Errorf("no %q in\n%s", want, lines)
		}
	}
}

func TestViewIsForTerminals(t *testing.T) {
	term, tty := openTerminal(t, 80, 24)
	_, small := openTerminal(t, 79, 24)
	go io.Copy(io.Discard, term)
	for _, tc := range []struct {
		name  string
		out   io.Writer
		plain bool
		vars  []string
		view  bool
	}{
		{"a terminal", tty, false, []string{"TERM=xterm"}, true},
		{"a terminal, and lines are asked for", tty, true, []string{"TERM=xterm"}, false},
		{"a terminal without colours", tty, false, []string{"TERM=xterm", "NO_COLOR=1"}, false},
		{"an empty NO_COLOR asks for nothing", tty, false, []string{"TERM=xterm", "NO_COLOR="}, true},
		{"a dumb terminal", tty, false, []string{"TERM=dumb"}, false},
		{"a small terminal", small, false, []string{"TERM=xterm"}, false},
		{"a pipe", &bytes.Buffer{}, false, []string{"TERM=xterm"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, is := newDisplay(environment{out: &written{w: tc.out}, vars: tc.vars}, tc.plain).(*view)
			if is != tc.view {
				t.Errorf("a view: %v", is)
			}
		})
	}
}

// On a real terminal the demo shows what happens, and gives the terminal back: when
// it is done, and when somebody has seen enough.
func TestDemoOnATerminal(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		stop string // what is seen when it is interrupted
		code int
		want []string
	}{
		{"to its end", []string{"demo", "--fast"}, "", 0, []string{"connection_reset", "r2_synthesize_tool_use", "through unbroken"}},
		{"to an interrupt", []string{"demo"}, "connection_reset", 1, []string{"unbroken: received interrupt"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			term, tty := openTerminal(t, 80, 24)
			cmd := exec.Command("unbroken", tc.args...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
			cmd.Env = []string{"TERM=xterm", "PATH=" + os.Getenv("PATH")}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = tty.Close() // so that the terminal ends with the program
			guard := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
			defer guard.Stop()
			var seen strings.Builder
			for buf, stopped := make([]byte, 4096), false; ; {
				n, err := term.Read(buf)
				seen.Write(buf[:n])
				if tc.stop != "" && !stopped && strings.Contains(seen.String(), tc.stop) {
					stopped = true
					_ = cmd.Process.Signal(syscall.SIGINT)
				}
				if err != nil {
					break // EIO: the last of the other side is gone
				}
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != tc.code {
				t.Errorf("exit %d", code)
			}
			enters, leaves := strings.Count(seen.String(), enter), strings.Count(seen.String(), leave)
			if enters != 1 || leaves != 1 || strings.LastIndex(seen.String(), home) > strings.Index(seen.String(), leave) {
				t.Errorf("the terminal was taken %d times and given back %d times\n%q", enters, leaves, seen.String())
			}
			for _, want := range tc.want {
				if !strings.Contains(seen.String(), want) {
					t.Errorf("no %q in %q", want, seen.String())
				}
			}
		})
	}
}

// openTerminal is both sides of a terminal of a size.
func openTerminal(t *testing.T, wide, high uint16) (term, tty *os.File) {
	t.Helper()
	term, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = term.Close(), tty.Close() })
	if err := pty.Setsize(term, &pty.Winsize{Cols: wide, Rows: high}); err != nil {
		t.Fatal(err)
	}
	return term, tty
}
