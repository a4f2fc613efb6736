package main

import (
	"context"
	"maps"
	"os"
	"slices"
	"time"
)

// look is how often the files of a configuration are looked at.
const look = time.Second

// changes tells when a file that a configuration was read from is another one.
//
// It looks at where a name leads, again and again, instead of asking the kernel to be told:
// an editor that puts a new file in place, Kubernetes, which turns a symlink to a whole
// directory, a file that is mounted by itself and a network filesystem then are one case,
// and each of them is told, if told at all, in another way.
type changes struct {
	known map[string]os.FileInfo // what was read; nil for a file that is not there
	last  map[string]os.FileInfo
}

// begin is called before the files are read: what changes meanwhile has changed.
func (c *changes) begin() { c.known = c.stat() }

// which are the files that are not what was read, sorted.
func (c *changes) which() []string {
	names := []string{}
	for name, info := range c.stat() {
		if !sameFile(info, c.known[name]) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// piped reports whether a file can be read only once, like those of a shell's <(…): read
// again it is empty, which is a configuration, or never ends.
func piped(name string) bool {
	info := stat(name)
	return info != nil && info.Mode()&(os.ModeNamedPipe|os.ModeSocket|os.ModeCharDevice) != 0
}

// read says which files were read.
func (c *changes) read(names []string) {
	now := map[string]os.FileInfo{}
	for _, name := range names {
		info, known := c.known[name]
		if !known {
			info = stat(name)
		}
		now[name] = info
	}
	c.known, c.last = now, now
}

// some reports whether a file has changed and is settled: who writes one in place writes it
// in pieces, and who replaces several replaces one after the other.
func (c *changes) some() bool {
	now := c.stat()
	settled := maps.EqualFunc(now, c.last, sameFile)
	c.last = now
	return settled && !maps.EqualFunc(now, c.known, sameFile)
}

func (c *changes) stat() map[string]os.FileInfo {
	all := map[string]os.FileInfo{}
	for name := range c.known {
		all[name] = stat(name)
	}
	return all
}

func stat(name string) os.FileInfo {
	info, err := os.Stat(name)
	if err != nil {
		return nil
	}
	return info
}

func sameFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// follow calls f when some file has changed, and for every signal, until ctx ends.
func (c *changes) follow(ctx context.Context, every time.Duration, signals <-chan os.Signal, f func(why string)) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-signals:
			f("received " + s.String())
		case <-t.C:
			if c.some() {
				f("a file has changed")
			}
		}
	}
}
