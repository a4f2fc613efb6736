package telemetry

import (
	"bytes"
	"context"
	"errors"
	"go/ast"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/unbroken-llm/unbroken/proxy"
)

// gathered is a collector that keeps what it is sent.
type gathered struct {
	collector.UnimplementedTraceServiceServer
	got chan *collector.ExportTraceServiceRequest
}

func (g *gathered) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	g.got <- r
	return &collector.ExportTraceServiceResponse{}, nil
}

// ServeHTTP is the collector's other door.
func (g *gathered) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	m := &collector.ExportTraceServiceRequest{}
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, m) != nil {
		http.Error(w, "no traces", http.StatusBadRequest)
		return
	}
	g.got <- m
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// Both protocols carry a stream's story: the client's own trace goes on, attempts are
// children of the request, and what happened between them is told on it.
func TestTracesReachACollector(t *testing.T) {
	for _, protocol := range []string{GRPC, HTTP} {
		t.Run(protocol, func(t *testing.T) {
			g := &gathered{got: make(chan *collector.ExportTraceServiceRequest, 4)}
			url := serveCollector(t, g, protocol)
			tr, err := OpenTraces(t.Context(), TraceConfig{Endpoint: url, Protocol: protocol, Version: "v1", Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			s := subject
			s.Trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
			tell(tr, s, story, ending)
			if err := tr.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			r := <-g.got
			if name := value(r.ResourceSpans[0].Resource.Attributes, "service.name"); name != "unbroken" {
				t.Errorf("service.name is %q", name)
			}
			checkStory(t, r.ResourceSpans[0].ScopeSpans[0].Spans)
		})
	}
}

func serveCollector(t *testing.T, g *gathered, protocol string) string {
	if protocol == HTTP {
		s := httptest.NewServer(g)
		t.Cleanup(s.Close)
		return s.URL
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	collector.RegisterTraceServiceServer(s, g)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return "http://" + l.Addr().String()
}

func checkStory(t *testing.T, spans []*otlp.Span) {
	t.Helper()
	if len(spans) != 3 {
		t.Fatalf("%d spans", len(spans))
	}
	one, two, whole := spans[0], spans[1], spans[2] // in the order of their ends
	if whole.Kind != otlp.Span_SPAN_KIND_SERVER || len(whole.ParentSpanId) == 0 || whole.TraceId[0] != 0x0a || whole.ParentSpanId[0] != 0xb7 {
		t.Errorf("the request's span is %v", whole)
	}
	for i, s := range []*otlp.Span{one, two} {
		if s.Kind != otlp.Span_SPAN_KIND_CLIENT || !bytes.Equal(s.ParentSpanId, whole.SpanId) || value(s.Attributes, "unbroken.attempt") != strconv.Itoa(i) {
			t.Errorf("attempt %d is %v", i, s)
		}
	}
	if one.Status.GetCode() != otlp.Status_STATUS_CODE_ERROR || value(one.Attributes, "error.type") != "connection_reset" || two.Status.GetCode() == otlp.Status_STATUS_CODE_ERROR {
		t.Errorf("attempts ended as %v and %v", one.Status, two.Status)
	}
	if value(two.Attributes, "unbroken.upstream") != "second" || value(two.Attributes, "gen_ai.request.model") != "m2" {
		t.Errorf("the second attempt was at %v", two.Attributes)
	}
	for key, want := range map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": hostile,
		"gen_ai.usage.input_tokens": "1000", "gen_ai.usage.output_tokens": "300",
		"unbroken.outcome": "healed", "unbroken.whose": "completed", "unbroken.recoveries": "1", "unbroken.repaid_tokens": "900", "unbroken.saved_tokens": "120",
	} {
		if got := value(whole.Attributes, key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	var names []string
	for _, e := range whole.Events {
		names = append(names, e.Name)
	}
	if got := strings.Join(names, " "); got != "unbroken.interrupted unbroken.seam unbroken.healed unbroken.demoted unbroken.unprotected" {
		t.Errorf("events %s", got)
	}
	if e := whole.Events[0]; value(e.Attributes, "unbroken.cause") != "connection_reset" || value(e.Attributes, "unbroken.plan") != "r1_continue_text" || value(e.Attributes, "unbroken.reason") != "text" {
		t.Errorf("the interruption is %v", e)
	}
}

func value(all []*common.KeyValue, key string) string {
	for _, a := range all {
		if a.Key == key {
			switch v := a.Value.Value.(type) {
			case *common.AnyValue_StringValue:
				return v.StringValue
			case *common.AnyValue_IntValue:
				return strconv.FormatInt(v.IntValue, 10)
			}
		}
	}
	return ""
}

// What its client's tracing does not sample is not sampled here.
func TestParentDecidesOnSampling(t *testing.T) {
	tr := newTraces(sdk.WithSyncer(tracetest.NewInMemoryExporter()))
	s := subject
	if s.Trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"; tr.Begin(s) != nil {
		t.Error("a stream is traced that its client does not trace")
	}
	if s.Trace = "nonsense"; tr.Begin(s) == nil {
		t.Error("a stream with a broken traceparent is not traced")
	}
}

// Whose fault an end was decides whether it is an error.
func TestOnlyFailuresAreErrors(t *testing.T) {
	for w, want := range map[proxy.Whose]string{
		proxy.Completed: "Unset", proxy.Client: "Unset", proxy.Request: "Unset", proxy.Us: "Error", proxy.Provider: "Error",
	} {
		out := tracetest.NewInMemoryExporter()
		tell(newTraces(sdk.WithSyncer(out)), subject, nil, proxy.Outcome{At: ending.At, Whose: w, Token: "failed:budget_spent"})
		if got := out.GetSpans()[0].Status.Code.String(); got != want {
			t.Errorf("%s ends as %s, want %s", w, got, want)
		}
	}
}

// Traces are off unless somebody says where they go; then the port tells how.
func TestTracesAreOffUntilTold(t *testing.T) {
	for _, tc := range []struct {
		name     string
		c        TraceConfig
		env      map[string]string
		on       bool
		protocol string
	}{
		{"nothing is said", TraceConfig{}, nil, false, ""},
		{"an endpoint for gRPC", TraceConfig{Endpoint: "http://c:4317"}, nil, true, GRPC},
		{"an endpoint for HTTP", TraceConfig{Endpoint: "http://c:4318"}, nil, true, HTTP},
		{"a protocol besides", TraceConfig{Endpoint: "http://c:4318", Protocol: GRPC}, nil, true, GRPC},
		{"the environment", TraceConfig{}, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317"}, true, GRPC},
		{"the environment, for traces", TraceConfig{}, map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c/x", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, true, GRPC},
		{"disabled", TraceConfig{}, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "true"}, false, ""},
		{"no exporter", TraceConfig{}, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_EXPORTER": "none"}, false, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			on := tc.c.Wanted(func(n string) (string, bool) { v, ok := tc.env[n]; return v, ok })
			if on != tc.on || on && tc.c.Protocol != tc.protocol {
				t.Errorf("on %v by %q, want %v by %q", on, tc.c.Protocol, tc.on, tc.protocol)
			}
		})
	}
}

func TestParseEndpoint(t *testing.T) {
	for s, ok := range map[string]bool{
		"http://localhost:4317": true, "https://c.example/otlp": true, "localhost:4317": false, "grpc://c": false, "http://": false, "http://u:p@c": false, "http://c?x=1": false, "": false,
	} {
		if err := ParseEndpoint(s); (err == nil) != ok {
			t.Errorf("%q: %v", s, err)
		} else if err != nil && strings.Contains(err.Error(), "u:p") {
			t.Errorf("%q: a password is shown: %v", s, err)
		}
	}
}

type broken struct {
	sdk.SpanExporter
	err error
}

func (b *broken) ExportSpans(context.Context, []sdk.ReadOnlySpan) error { return b.err }

// A collector that is away costs one line, and one when it is back.
func TestFailingExportsAreToldOnce(t *testing.T) {
	var out bytes.Buffer
	b := &broken{err: errors.New("nobody listens")}
	c := &candid{SpanExporter: b, log: slog.New(slog.NewTextHandler(&out, nil))}
	for _, err := range []error{b.err, b.err, nil, nil, b.err} {
		b.err = err
		if err := c.ExportSpans(t.Context(), nil); err != nil {
			t.Error("the SDK's global handler would write a line too")
		}
	}
	if got := strings.Count(out.String(), "\n"); got != 3 {
		t.Errorf("%d lines:\n%s", got, out.String())
	}
}

// Every name that spans are told with stands in the manual.
func TestManualListsSpans(t *testing.T) {
	manual, err := os.ReadFile(filepath.Join("..", "docs", "TELEMETRY.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range sources(t, "telemetry") {
		if f.Name.Name != "telemetry" {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			l, ok := n.(*ast.BasicLit)
			if !ok {
				return true
			}
			s, err := strconv.Unquote(l.Value)
			if err != nil || !strings.HasPrefix(s, "unbroken.") && !strings.HasPrefix(s, "gen_ai.") && s != "error.type" && !strings.HasPrefix(s, "http.") {
				return true
			}
			found++
			if !bytes.Contains(manual, []byte("`"+s+"`")) {
				t.Errorf("docs/TELEMETRY.md does not tell of %s", s)
			}
			return true
		})
	}
	if found < 30 {
		t.Errorf("only %d names were found", found)
	}
}
