package telemetry

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// What the dashboard and the alerts ask for exists: metrics, their labels, and the
// label values that they compare with.
func TestDashboardAndAlertsAskForWhatThereIs(t *testing.T) {
	exprs := append(dashboard(t), alerts(t)...)
	if len(exprs) < 20 {
		t.Fatalf("only %d expressions were found", len(exprs))
	}
	used := regexp.MustCompile(`\b(unbroken_[a-z_]+)(?:\{([^}]*)\})?`)
	for _, expr := range exprs {
		found := used.FindAllStringSubmatch(expr, -1)
		if len(found) == 0 {
			t.Errorf("%s asks for nothing of ours", expr)
		}
		for _, f := range found {
			m, ok := metricNamed(f[1])
			if !ok {
				t.Errorf("%s: there is no metric %s", expr, f[1])
				continue
			}
			checkMatchers(t, expr, m, f[2])
			for _, by := range regexp.MustCompile(`by \(([^)]*)\)`).FindAllStringSubmatch(expr, -1) {
				for name := range strings.SplitSeq(by[1], ", ") {
					if name != "instance" && name != "le" && !m.has(name) {
						t.Errorf("%s: %s has no label %s", expr, m.Name, name)
					}
				}
			}
		}
	}
}

// One client that sends what no provider takes must not call anybody.
func TestNobodyIsCalledForRequestsThatProvidersRefuse(t *testing.T) {
	asked := 0
	for _, expr := range append(dashboard(t), alerts(t)...) {
		for _, found := range regexp.MustCompile(unsafe.Name+`(\{[^}]*\})?`).FindAllStringSubmatch(expr, -1) {
			if asked++; !strings.Contains(found[1], `refused="false"`) {
				t.Errorf("%s counts what was refused", expr)
			}
		}
	}
	if asked < 2 {
		t.Errorf("%s is asked for %d times", unsafe.Name, asked)
	}
}

func metricNamed(name string) (Metric, bool) {
	for _, m := range Metrics() {
		if m.Name == name || m.Kind == Histogram && slices.Contains([]string{m.Name + "_bucket", m.Name + "_sum", m.Name + "_count"}, name) {
			return m, true
		}
	}
	return Metric{}, false
}

func (m Metric) has(label string) bool {
	return slices.ContainsFunc(m.Labels, func(l Label) bool { return l.Name == label })
}

func checkMatchers(t *testing.T, expr string, m Metric, matchers string) {
	t.Helper()
	for _, f := range regexp.MustCompile(`(\w+)(=~|!~|!=|=)"([^"]*)"`).FindAllStringSubmatch(matchers, -1) {
		if f[1] == "instance" {
			continue
		}
		i := slices.IndexFunc(m.Labels, func(l Label) bool { return l.Name == f[1] })
		if i < 0 {
			t.Errorf("%s: %s has no label %s", expr, m.Name, f[1])
			continue
		}
		for v := range strings.SplitSeq(f[3], "|") {
			if vs := m.Labels[i].Values; vs != nil && !slices.Contains(vs, v) {
				t.Errorf("%s: %s is never %q", expr, f[1], v)
			}
		}
	}
}

func dashboard(t *testing.T) (exprs []string) {
	t.Helper()
	var d struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(deployed(t, "unbroken.json"), &d); err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			exprs = append(exprs, target.Expr)
		}
	}
	return exprs
}

func alerts(t *testing.T) (exprs []string) {
	t.Helper()
	var a struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(deployed(t, "alerts.yml"), &a); err != nil {
		t.Fatal(err)
	}
	for _, g := range a.Groups {
		for _, r := range g.Rules {
			exprs = append(exprs, r.Expr)
		}
	}
	return exprs
}

func deployed(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "deploy", "grafana", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
