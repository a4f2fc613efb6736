package gauge

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"time"
)

// Machine is what numbers depend on.
type Machine struct {
	CPU   string    `json:"cpu"`
	Cores int       `json:"cores"`
	Procs int       `json:"gomaxprocs"` // of the load, and by inheritance of the proxies in Go
	Go    string    `json:"go"`
	OS    string    `json:"os"`
	At    time.Time `json:"at"`
}

func thisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), Procs: runtime.GOMAXPROCS(0), Go: runtime.Version(), OS: runtime.GOOS + "/" + runtime.GOARCH, At: time.Now().UTC().Truncate(time.Second)}
	info, _ := os.ReadFile("/proc/cpuinfo") // elsewhere it has no name
	for line := range bytes.Lines(info) {
		if name, v, ok := bytes.Cut(line, []byte(":")); ok && string(bytes.TrimSpace(name)) == "model name" {
			m.CPU = string(bytes.TrimSpace(v))
			break
		}
	}
	return m
}

// String is the machine in words.
func (m Machine) String() string {
	cpu := m.CPU
	if cpu == "" {
		cpu = "an unnamed CPU"
	}
	return fmt.Sprintf("%d cores of %s, GOMAXPROCS %d, %s, %s, on %s", m.Cores, cpu, m.Procs, m.Go, m.OS, m.At.Format("2 January 2006"))
}
