package gauge

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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

// readable is an error if there is no such process, or its books are kept from us: memory that
// cannot be read would be none.
func (p *process) readable() error {
	if err := syscall.Kill(p.pid, 0); errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("no process has the PID %d: has the proxy ended, or is it in a container, where it has another?", p.pid)
	}
	if !hasBooks {
		return nil
	}
	if _, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.pid)); err != nil {
		return fmt.Errorf("the books of process %d cannot be read: run the bench as its user, or leave the PID out: %w", p.pid, err)
	}
	return nil
}

// hasBooks tells whether the kernel keeps books that are read here. Without them latencies are
// measured, and CPU and memory are 0.
const hasBooks = runtime.GOOS == "linux"

// cpu is the time that the family's threads were on a CPU; 0 where there are no books.
func (p *process) cpu() (time.Duration, error) {
	if p == nil || !hasBooks {
		return 0, nil
	}
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

// memory is the family's proportional share of resident memory, in bytes; 0 where there are
// no books.
func (p *process) memory() (int64, error) { return p.sum("smaps_rollup", "Pss") }

// rebase makes the peak what is resident now, and returns that, in bytes.
func (p *process) rebase() (int64, error) {
	if p == nil || !hasBooks {
		return 0, nil
	}
	for _, pid := range p.family() {
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
			return 0, fmt.Errorf("reset the peak of memory: %w", err)
		}
	}
	return p.sum("status", "VmRSS")
}

// peak is the most that was resident since then, in bytes. Processes of a family need not have
// had theirs at the same time.
func (p *process) peak() (int64, error) { return p.sum("status", "VmHWM") }

// sum adds up a field, in kilobytes there, of a file that the kernel keeps of each process.
func (p *process) sum(file, field string) (sum int64, err error) {
	if p == nil || !hasBooks {
		return 0, nil
	}
	for _, pid := range p.family() {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
		if err != nil {
			continue // it has ended
		}
		for line := range bytes.Lines(b) {
			if rest, ok := bytes.CutPrefix(line, []byte(field+":")); ok {
				kb, err := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
				if err != nil {
					return 0, fmt.Errorf("%s of %d: %w", file, pid, err)
				}
				sum += kb << 10
			}
		}
	}
	return sum, nil
}

// mostStreams is how many streams a process can have open on both of its sides.
func mostStreams() int {
	const (
		rest  = 500 // files that are no streams
		least = 10
	)
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil || l.Max > 1<<20 {
		return 1 << 19
	}
	return max(least, (int(l.Max)-rest)/2)
}
