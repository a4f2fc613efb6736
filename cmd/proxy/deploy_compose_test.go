package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/url"
	"os"
	slashpath "path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const composeDir = "../../deploy/compose"

// composition is what is read of deploy/compose/compose.yaml.
type composition struct {
	Services map[string]struct {
		Image string
		Build struct {
			Context string
			Args    map[string]string
		}
		Ports       []string
		Environment map[string]string
		Volumes     []string
		Configs     []struct{ Source, Target string }
	}
	Configs map[string]struct{ Content string }
	Volumes map[string]any
}

func parsed[T any](t *testing.T, elements ...string) (v T) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, &v); err != nil {
		t.Fatalf("%s: %v", filepath.Join(elements...), err)
	}
	return v
}

// What the services are given exists, is published to this machine only, and is of
// a version that somebody chose.
func TestCompositionIsWhole(t *testing.T) {
	c := parsed[composition](t, composeDir, "compose.yaml")
	for name, s := range c.Services {
		if _, tag, ok := strings.Cut(s.Image, ":"); s.Build.Context == "" && (!ok || tag == "latest") {
			t.Errorf("%s: image %q has no version", name, s.Image)
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s publishes %s to the network", name, p)
			}
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if _, named := c.Volumes[from]; named {
				continue
			}
			if info, err := os.Stat(filepath.Join(composeDir, from)); err != nil || info.IsDir() {
				t.Errorf("%s mounts %s, which is no file", name, from)
			}
		}
		for _, f := range s.Configs {
			if _, ok := c.Configs[f.Source]; !ok {
				t.Errorf("%s is given %s, which is not there", name, f.Source)
			}
		}
	}
}

// The image was built of no version in particular: unbroken version in the container said
// devel, and so did the metrics and the log.
func TestCompositionIsBuiltOfAVersion(t *testing.T) {
	build := parsed[composition](t, composeDir, "compose.yaml").Services["unbroken"].Build
	recipe, err := os.ReadFile(filepath.Join(composeDir, build.Context, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	made, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	wanted := regexp.MustCompile(`-X main\.\w+=\$\{(\w+)\}`).FindAllStringSubmatch(string(recipe), -1)
	if len(wanted) != 3 {
		t.Fatalf("the image is built of %v", wanted)
	}
	for _, m := range wanted {
		name := m[1]
		if !strings.HasPrefix(build.Args[name], "${"+name+":-") {
			t.Errorf("the composition builds with %s: %q", name, build.Args[name])
		}
		if !regexp.MustCompile(`(?m)^\t.*\b` + name + `=\$\(` + name + `\).* docker compose `).Match(made) {
			t.Errorf("make compose does not set %s", name)
		}
		if !strings.Contains(string(made), "--build-arg "+name+"=$("+name+")") {
			t.Errorf("make image does not set %s", name)
		}
	}
}

// The proxy takes its settings, and Prometheus finds and may read what it serves.
func TestCompositionIsScraped(t *testing.T) {
	c := parsed[composition](t, composeDir, "compose.yaml")
	u := c.Services["unbroken"]
	var vars []string
	for name, text := range u.Environment {
		vars = append(vars, name+"="+strings.TrimSuffix(text[strings.Index(text, ":-")+1:], "}"))
	}
	var complaints bytes.Buffer
	if run(t.Context(), environment{args: []string{"check"}, vars: vars, out: io.Discard, err: &complaints}) != 0 {
		t.Error(complaints.String())
	}
	prom := parsed[struct {
		Rules  []string `yaml:"rule_files"`
		Scrape []struct {
			Authorization struct {
				File string `yaml:"credentials_file"`
			}
			Static []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}](t, composeDir, "prometheus.yml")
	if len(prom.Scrape) != 1 || len(prom.Scrape[0].Static) != 1 {
		t.Fatalf("%+v", prom)
	}
	host, port, err := net.SplitHostPort(prom.Scrape[0].Static[0].Targets[0])
	if err != nil || host != "unbroken" || !strings.HasSuffix(u.Environment["UNBROKEN_ADMIN"], ":"+port) {
		t.Errorf("Prometheus asks %s:%s (%v), the proxy answers at %s", host, port, err, u.Environment["UNBROKEN_ADMIN"])
	}
	given := map[string]bool{}
	for _, v := range c.Services["prometheus"].Volumes {
		given[strings.Split(v, ":")[1]] = true
	}
	for _, f := range c.Services["prometheus"].Configs {
		given[f.Target] = true
		if c.Configs[f.Source].Content != u.Environment["UNBROKEN_ADMIN_TOKEN"] {
			t.Errorf("Prometheus shows %s, the proxy wants %s", c.Configs[f.Source].Content, u.Environment["UNBROKEN_ADMIN_TOKEN"])
		}
	}
	for _, name := range append(prom.Rules, prom.Scrape[0].Authorization.File, "prometheus.yml") {
		if !given[slashpath.Join("/etc/prometheus", name)] {
			t.Errorf("Prometheus is not given %s", name)
		}
	}
}

// Grafana has the dashboard, and a data source of the kind that it asks for.
func TestCompositionHasItsDashboard(t *testing.T) {
	c := parsed[composition](t, composeDir, "compose.yaml")
	targets := map[string]bool{}
	for _, v := range c.Services["grafana"].Volumes {
		targets[strings.Split(v, ":")[1]] = true
	}
	dashboards := parsed[struct {
		Providers []struct {
			Options struct{ Path string }
		}
	}](t, composeDir, "grafana", "dashboards.yaml")
	file := slashpath.Join(dashboards.Providers[0].Options.Path, "unbroken.json")
	if home := c.Services["grafana"].Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]; !targets[file] || home != file {
		t.Errorf("the dashboard is at %v, not %s; the home is %s", targets, file, home)
	}
	for _, part := range []string{"/etc/grafana/provisioning/datasources/unbroken.yaml", "/etc/grafana/provisioning/dashboards/unbroken.yaml"} {
		if !targets[part] {
			t.Errorf("nothing is mounted at %s", part)
		}
	}
	sources := parsed[struct {
		Datasources []struct{ Type, URL string }
	}](t, composeDir, "grafana", "datasource.yaml")
	at, err := url.Parse(sources.Datasources[0].URL)
	if _, ok := c.Services[at.Hostname()]; err != nil || !ok {
		t.Errorf("no service %s (%v)", at.Hostname(), err)
	}
	b, err := os.ReadFile("../../deploy/grafana/unbroken.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Templating struct {
			List []struct{ Name, Type, Query any }
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	for _, v := range d.Templating.List {
		if v.Type == "datasource" {
			if v.Query != sources.Datasources[0].Type {
				t.Errorf("the dashboard asks for %v, there is %s", v.Query, sources.Datasources[0].Type)
			}
			return
		}
	}
	t.Error("the dashboard has no choice of data source")
}
