package gauge

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
)

// mode is something else to measure than scenarios, and the flags that it goes by: its own,
// the first of which asks for it, and others that it shares.
type mode struct{ own, also []string }

var (
	aiming   = mode{[]string{"target", "key-env", "model", "requests", "parallel", "tokens"}, []string{"wire", "json"}}
	counting = mode{[]string{"redis"}, []string{"unbroken", "json"}}
	soaking  = mode{[]string{"soak", "for", "every", "out", "soak-peer"}, []string{"unbroken", "wire"}}
	modes    = []mode{aiming, counting, soaking}
)

func (m mode) name() string { return "--" + m.own[0] }

// mode is what is asked for; nil: scenarios.
func (c *flags) mode() *mode {
	switch {
	case c.target.URL != "":
		return &aiming
	case c.redis:
		return &counting
	case c.soak:
		return &soaking
	}
	return nil
}

// belong is an error for each flag that was given and would be ignored.
func (c *flags) belong(f *flag.FlagSet) error {
	var found []error
	m := c.mode()
	f.Visit(func(f *flag.Flag) {
		if m != nil {
			if !slices.Contains(slices.Concat(m.own, m.also), f.Name) {
				found = append(found, fmt.Errorf("--%s says nothing beside %s, which takes --%s", f.Name, m.name(), strings.Join(slices.Concat(m.own[1:], m.also), ", --")))
			}
			return
		}
		for _, m := range modes {
			switch {
			case !slices.Contains(m.own, f.Name):
			case f.Name != m.own[0]:
				found = append(found, fmt.Errorf("--%s goes with %s alone", f.Name, m.name()))
			case f.Value.String() == "":
				found = append(found, fmt.Errorf("%s is empty", m.name()))
			}
		}
	})
	return errors.Join(found...)
}
