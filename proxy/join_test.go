package proxy

import (
	"strings"
	"testing"
)

// FIELD-REPORTS F19.
func TestJoin(t *testing.T) {
	for _, c := range []struct{ base, request, want string }{
		{"", "/v1/messages", "/v1/messages"},
		{"/", "/v1/messages", "/v1/messages"},
		{"/v1", "/v1/messages", "/v1/messages"},
		{"/v1/", "/v1/messages", "/v1/messages"},
		{"/api/v1", "/v1/chat/completions", "/api/v1/chat/completions"},
		{"/v1/openai", "/v1/chat/completions", "/v1/openai/chat/completions"},
		{"/v1beta/openai/", "/v1/chat/completions", "/v1beta/openai/chat/completions"},
		{"/api/paas/v4", "/v1/chat/completions", "/api/paas/v4/chat/completions"},
		{"/v1beta", "/v1beta/models/x:generate", "/v1beta/models/x:generate"},
		{"/v1", "/v1beta/models", "/v1/v1beta/models"},
		{"/openai/v1", "/chat/completions", "/openai/v1/chat/completions"},
		{"/proxy", "/v1/messages", "/proxy/v1/messages"},
		{"/proxy/", "/v1/messages", "/proxy/v1/messages"},
		{"/beta", "/chat/completions", "/beta/chat/completions"},
		{"/v1", "/v1", "/v1"},
		{"/v1", "/v1?x=1", "/v1?x=1"},
		{"/v1", "/v10/x", "/v1/v10/x"},
		{"/view1", "/v1/x", "/view1/v1/x"},
		{"/a", "//b//c/", "/a//b//c/"},
		{"", "//v1//x;y=%2F%zz?a;b=//&c", "//v1//x;y=%2F%zz?a;b=//&c"},
		{"/v1", "/v1/x%2Fy/?q=/v1/v1", "/v1/x%2Fy/?q=/v1/v1"},
	} {
		if got := Join(c.base, c.request); got != c.want {
			t.Errorf("Join(%q, %q) = %q, want %q", c.base, c.request, got, c.want)
		}
	}
}

func TestRoutes(t *testing.T) {
	s, err := New(Config{Upstreams: []Upstream{
		{Name: "azure", URL: "https://x.openai.azure.com"},
		{Name: "router", URL: "https://openrouter.ai/api/v1"},
		{Name: "only", URL: "https://x.example", Dialect: "messages"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown(t.Context())
	for _, c := range []struct{ method, target, header, to, path, speaks string }{
		{"POST", "/v1/chat/completions", "", "openai", "/v1/chat/completions", "chat"},
		{"POST", "/v1/chat/completions?x=1", "", "openai", "/v1/chat/completions?x=1", "chat"},
		{"GET", "/v1/chat/completions", "", "openai", "/v1/chat/completions", ""},
		{"POST", "/v1/completions", "", "openai", "/v1/completions", "completions"},
		{"GET", "/v1/completions", "", "openai", "/v1/completions", ""},
		{"POST", "/u/azure/openai/deployments/x/completions?api-version=1", "", "azure", "/openai/deployments/x/completions?api-version=1", "completions"},
		{"POST", "/u/router/v1/fim/completions", "", "router", "/api/v1/fim/completions", "completions"},
		{"POST", "/u/only/v1/completions", "", "only", "/v1/completions", ""},
		{"POST", "/v1/messages?beta=true", "anthropic-version", "anthropic", "/v1/messages?beta=true", "messages"},
		{"POST", "/v1/messages/count_tokens", "", "anthropic", "/v1/messages/count_tokens", ""},
		{"GET", "/v1/models", "", "openai", "/v1/models", ""},
		{"GET", "/v1/models", "anthropic-version", "anthropic", "/v1/models", ""},
		{"POST", "/v1/embeddings", "", "openai", "/v1/embeddings", ""},
		{"POST", "/v1/threads/t/messages", "", "openai", "/v1/threads/t/messages", ""},
		{"HEAD", "/", "", "openai", "/", ""},
		{"POST", "//v1/chat/completions", "", "openai", "//v1/chat/completions", ""},
		{"POST", "/u/azure/openai/deployments/x/chat/completions?api-version=1", "", "azure", "/openai/deployments/x/chat/completions?api-version=1", "chat"},
		{"POST", "/u/router/v1/chat/completions", "", "router", "/api/v1/chat/completions", "chat"},
		{"POST", "/u/router/api/v1/chat/completions", "", "router", "/api/v1/api/v1/chat/completions", "chat"},
		{"POST", "/u/router/v1/messages", "", "router", "/api/v1/messages", "messages"},
		{"POST", "/u/only/v1/chat/completions", "", "only", "/v1/chat/completions", ""},
		{"POST", "/u/only/v1/messages", "", "only", "/v1/messages", "messages"},
		{"GET", "/u/azure", "", "azure", "/", ""},
		{"GET", "/u/azure?x", "", "azure", "/?x", ""},
		{"GET", "/u/nobody/v1/models", "", "", "", ""},
	} {
		h := parseHeader([]byte(c.header + ": 1\r\n"))
		r, ok := s.terms.Load().resolve(c.method, c.target, h)
		if !ok {
			if c.to != "" {
				t.Errorf("%s %s has no route", c.method, c.target)
			}
			continue
		}
		speaks := ""
		if r.speaks != nil {
			speaks = r.speaks.Name()
		}
		if r.to.Name != c.to || r.path != c.path || speaks != c.speaks {
			t.Errorf("%s %s goes to %s %s speaking %q, want %s %s %q", c.method, c.target, r.to.Name, r.path, speaks, c.to, c.path, c.speaks)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []struct {
		u    Upstream
		want string
	}{
		{Upstream{Name: "a/b", URL: "https://x"}, "use letters"},
		{Upstream{Name: "a", URL: "x.example/v1"}, "must start with https://"},
		{Upstream{Name: "a", URL: "https:///v1"}, "no host"},
		{Upstream{Name: "a", URL: "https://me:hunter2@x"}, "credential into a header"},
		{Upstream{Name: "a", URL: "https://x/v1?key=hunter2"}, "no query"},
		{Upstream{Name: "a", URL: "https://x/v1/chat/completions/"}, "give the base URL"},
		{Upstream{Name: "a", URL: "https://x/\x01hunter2"}, "cannot be parsed"},
		{Upstream{Name: "a", URL: "https://x", Dialect: "klingon"}, "unknown dialect"},
	} {
		err := Config{Upstreams: []Upstream{c.u}}.Validate()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.u, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the message shows a credential: %v", err)
		}
	}
	if err := (Config{Upstreams: []Upstream{{Name: "a", URL: "http://[::1]:1/v1"}, {Name: "a", URL: "https://y"}}}).Validate(); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("a name given twice: %v", err)
	}
}
