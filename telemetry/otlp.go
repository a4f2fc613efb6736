package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// The protocols of OTLP, as OTEL_EXPORTER_OTLP_PROTOCOL spells them.
const (
	GRPC = "grpc"
	HTTP = "http/protobuf"
)

// TraceConfig says where traces go. What it does not say, OTEL_ variables of the
// process do (headers, certificates, sampler, service name, resource attributes).
type TraceConfig struct {
	Endpoint string // URL; empty: from the environment
	Protocol string // GRPC or HTTP
	Version  string
	Log      *slog.Logger
}

// Wanted completes c from the environment that lookup reads, and reports whether
// traces go anywhere.
func (c *TraceConfig) Wanted(lookup func(string) (string, bool)) bool {
	env := func(names ...string) string {
		for _, n := range names {
			if v, ok := lookup(n); ok && v != "" {
				return v
			}
		}
		return ""
	}
	endpoint := c.Endpoint
	if endpoint == "" {
		if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") || env("OTEL_TRACES_EXPORTER") == "none" {
			return false
		}
		if endpoint = env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"); endpoint == "" {
			return false
		}
	}
	if c.Protocol == "" {
		c.Protocol = env("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
	}
	if c.Protocol == "" {
		c.Protocol = HTTP
		if u, err := url.Parse(endpoint); err == nil && u.Port() == "4317" { // gRPC's, by IANA
			c.Protocol = GRPC
		}
	}
	return true
}

// ParseEndpoint accepts the URL of a collector.
func ParseEndpoint(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return fmt.Errorf("%.100q is no URL", s)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("%.100q: write http://host:4317 (gRPC), http://host:4318 (HTTP), or https://…", u.Redacted())
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("a collector's URL has no user, query or fragment; credentials go into OTEL_EXPORTER_OTLP_HEADERS")
	}
	return nil
}

// OpenTraces returns traces that go where c says. A collector that is away is no
// error: what does not fit into the queue meanwhile is dropped.
func OpenTraces(ctx context.Context, c TraceConfig) (*Traces, error) {
	out, err := c.exporter(ctx)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "unbroken"), attribute.String("service.version", c.Version)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	return newTraces(sdk.WithBatcher(&candid{SpanExporter: out, log: c.Log}), sdk.WithResource(about)), nil
}

func (c TraceConfig) exporter(ctx context.Context) (sdk.SpanExporter, error) {
	switch c.Protocol {
	case GRPC:
		var o []otlptracegrpc.Option
		if c.Endpoint != "" {
			o = append(o, otlptracegrpc.WithEndpointURL(c.Endpoint))
		}
		return otlptracegrpc.New(ctx, o...)
	case HTTP:
		var o []otlptracehttp.Option
		if c.Endpoint != "" {
			base := strings.TrimRight(c.Endpoint, "/")
			if !strings.HasSuffix(base, "/v1/traces") {
				base += "/v1/traces"
			}
			o = append(o, otlptracehttp.WithEndpointURL(base))
		}
		return otlptracehttp.New(ctx, o...)
	}
	return nil, fmt.Errorf("protocol %.40q: use %s or %s", c.Protocol, GRPC, HTTP)
}

// candid logs when exports begin to fail and when they work again, in place of the
// SDK's global handler, which would write a line for each.
type candid struct {
	sdk.SpanExporter
	log    *slog.Logger
	failed atomic.Bool
}

// ExportSpans implements [sdk.SpanExporter].
func (c *candid) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	switch was := c.failed.Swap(err != nil); {
	case err != nil && !was:
		c.log.Warn("traces cannot be exported; they are dropped until they can", "error", err.Error())
	case err == nil && was:
		c.log.Info("traces are exported again")
	}
	return nil
}
