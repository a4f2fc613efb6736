//go:build unix

package filestore

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// lock makes this process the owner of the directory. The system gives the lock
// up when the process ends, however it ends.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		_ = f.Truncate(0)
		_, _ = fmt.Fprintln(f, os.Getpid()) // a courtesy to whoever comes too late
		return f, nil
	}
	var pid [20]byte
	n, _ := f.Read(pid[:])
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("%w: process %s", ErrInUse, strings.TrimSpace(string(pid[:n])))
	}
	return nil, err
}
