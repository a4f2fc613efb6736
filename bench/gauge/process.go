package gauge

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a proxy that runs beside us, with its children.
type process struct {
	pid  int
	cmd  *exec.Cmd
	out  *bytes.Buffer
	done chan struct{}
}

func start(name string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(name, args...), out: &bytes.Buffer{}, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p.pid = p.cmd.Process.Pid
	go func() { _ = p.cmd.Wait(); close(p.done) }()
	return p, nil
}

func (p *process) stop() {
	if p == nil || p.cmd == nil {
		return
	}
	_ = syscall.Kill(-p.pid, syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(3 * time.Second):
		_ = syscall.Kill(-p.pid, syscall.SIGKILL)
		<-p.done
	}
}

// family lists the process and its descendants.
func (p *process) family() []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		// The name, in parentheses, may hold anything; the parent is the second
		// field behind it.
		fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		if len(fields) > 1 {
			parent, _ := strconv.Atoi(fields[1])
			children[parent] = append(children[parent], pid)
		}
	}
	all := []int{p.pid}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// cpu is the time that the family's threads were on a CPU.
func (p *process) cpu() (time.Duration, error) {
	var sum time.Duration
	for _, pid := range p.family() {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		for _, path := range tasks {
			b, err := os.ReadFile(path)
			if err != nil {
				continue // the thread has ended
			}
			ns, err := strconv.ParseInt(string(bytes.Fields(b)[0]), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", path, err)
			}
			sum += time.Duration(ns)
		}
	}
	if sum == 0 {
		return 0, errors.New("the process has ended, or the kernel keeps no schedstat")
	}
	return sum, nil
}

// memory is the family's proportional share of resident memory, in bytes.
func (p *process) memory() (sum int64, err error) {
	for _, pid := range p.family() {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			continue // it has ended
		}
		for line := range bytes.Lines(b) {
			if rest, ok := bytes.CutPrefix(line, []byte("Pss:")); ok {
				kb, err := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
				if err != nil {
					return 0, fmt.Errorf("smaps of %d: %w", pid, err)
				}
				sum += kb << 10
			}
		}
	}
	return sum, nil
}
