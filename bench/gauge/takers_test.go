package gauge

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// ended is the PID of a process that was.
func ended(t *testing.T) int {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^$")
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	return c.Process.Pid
}

// A PID of no process was found out after an hour, when its CPU was 0.
func TestAPeerThatCannotBeIsRefusedAtOnce(t *testing.T) {
	gone := ended(t)
	const provider = "-provider 127.0.0.1:9 "
	for _, c := range []struct{ name, args, want string }{
		{"no process", fmt.Sprintf(provider+"-peer mine=http://127.0.0.1:4000,%d", gone), fmt.Sprintf("no process has the PID %d", gone)},
		{"the word of the manual", provider + "-peer mine=http://127.0.0.1:4000,PID", `"PID" is no PID: it is the number`},
		{"a comma and nothing", provider + "-peer mine=http://127.0.0.1:4000,", `"" is no PID`},
		{"a group", provider + "-peer mine=http://127.0.0.1:4000,-1", `"-1" is no PID`},
		{"everybody", provider + "-peer mine=http://127.0.0.1:4000,0", `"0" is no PID`},
		{"no name", provider + "-peer http://127.0.0.1:4000", "NAME=http://HOST:PORT"},
		{"an empty name", provider + "-peer =http://127.0.0.1:4000", "NAME=http://HOST:PORT"},
		{"no port", provider + "-peer mine=http://127.0.0.1", "HOST:PORT"},
		{"TLS", provider + "-peer mine=https://127.0.0.1:4000", "is not http://HOST:PORT"},
		{"a path", provider + "-peer mine=http://127.0.0.1:4000/v1", "is not http://HOST:PORT"},
		{"a name of another", provider + "-peers direct -peer direct=http://127.0.0.1:4000", "two peers are named direct"},
		{"one name twice", provider + "-peers= -peer a=http://127.0.0.1:4000 -peer a=http://127.0.0.1:4001", "two peers are named a"},
		{"nobody there", provider + "-peers= -peer mine=http://" + freeAddr(), "nobody listens"},
		{"nothing to take part in", provider + "-peers= -scenarios heal,faultrate -peer mine=http://127.0.0.1:4000", "takes part in loads"},
		{"asking who knows whom", "-peers= -peer mine=http://127.0.0.1:4000", "--provider HOST:PORT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, log bytes.Buffer
			err := Command(within(t), strings.Fields(c.args), []string{"bench"}, "", &out, &log)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
			if out.Len()+log.Len() > 0 {
				t.Errorf("something was begun:\n%s%s", out.String(), log.String())
			}
		})
	}
}

func TestAPeerIsTakenByItsAddressAndProcess(t *testing.T) {
	for _, c := range []struct {
		s, name, addr string
		pid           int
	}{
		{"mine=http://127.0.0.1:4000", "mine", "127.0.0.1:4000", 0},
		{"mine=127.0.0.1:4000/", "mine", "127.0.0.1:4000", 0},
		{"v6=http://[::1]:4000", "v6", "[::1]:4000", 0},
		{fmt.Sprintf("self=http://localhost:4000,%d", os.Getpid()), "self", "localhost:4000", os.Getpid()},
	} {
		p, err := other(c.s)
		if err != nil {
			t.Errorf("%s: %v", c.s, err)
			continue
		}
		r, err := p.Start("", "")
		if err != nil || p.Name != c.name || r.addr != c.addr || (r.proc == nil) != (c.pid == 0) || c.pid > 0 && r.proc.pid != c.pid {
			t.Errorf("%s: %s at %+v, %v", c.s, p.Name, r, err)
		}
	}
	if _, err := parse([]string{"-peer", "a=127.0.0.1:1", "-peer", "b=127.0.0.1:2"}, "", io.Discard); err != nil {
		t.Errorf("two peers: %v", err)
	}
}
