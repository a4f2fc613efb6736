package main

import (
	"log/slog"
	"strings"
	"time"

	"github.com/unbroken-llm/unbroken/proxy"
	"github.com/unbroken-llm/unbroken/sealed"
	"github.com/unbroken-llm/unbroken/telemetry"
	"github.com/unbroken-llm/unbroken/upstream"
)

// settings is everything that can be configured.
type settings struct {
	listen, tlsCert, tlsKey string
	admin, adminToken       string
	ledger                  bool
	drain                   time.Duration

	upstreams upstreams
	routes    routes
	caFile    string
	client    upstream.Config
	forward   string // forward proxy, off, or empty for those of the environment
	noForward string

	proxy    proxy.Config // the parts that are plain values
	store    string
	seal     sealed.Keys
	scopeKey string

	adoptIdentical bool

	logLevel  slog.Level
	logFormat string
	trace     telemetry.TraceConfig // Endpoint and Protocol
}

// field is one setting: a key of the file, and what follows from it.
type field struct {
	key     string
	def     string // as one would write it; "" is unset
	doc     string
	value   value
	section string // the heading it stands under, on the first of its section
}

// flag is the name of the field's flag: first_token is --first-token.
func (f *field) flag() string {
	switch f.key { // one at a time
	case keyUpstreams:
		return "upstream"
	case keyRoutes:
		return "route"
	}
	return strings.ReplaceAll(f.key, "_", "-")
}

// env is the name of its environment variable: UNBROKEN_FIRST_TOKEN.
func (f *field) env() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(f.flag(), "-", "_"))
}

const (
	envPrefix    = "UNBROKEN_"
	envConfig    = "UNBROKEN_CONFIG"
	keyUpstreams = "upstreams"
	keyRoutes    = "routes"
	keyAdmin     = "admin"
)

// The ranges that make sense. They are wide: they catch a slip of the unit or the
// sign, not a taste.
const (
	ms      = time.Millisecond
	day     = 24 * time.Hour
	kib     = 1 << 10
	mib     = 1 << 20
	maxBody = 4096 * mib
)

// fields is the table, bound to s. Its order is that of the example file.
func fields(s *settings, lookup func(string) (string, bool)) []field {
	r, w := &s.proxy.Relay, &s.proxy.Relay.Watch
	d := func(p *time.Duration, min, max time.Duration) value { return duration{p, min, max, false} }
	orOff := func(p *time.Duration) value { return duration{p, 10 * ms, day, true} }
	return []field{
		{"listen", "127.0.0.1:8790", "Where SDKs and agents connect. localhost means both loopbacks; port 0 means a free one.", address{&s.listen, false}, "Listeners"},
		{"tls_cert", "", "Certificate chain (PEM file) to speak TLS to clients; needs tls_key.", path{&s.tlsCert}, ""},
		{"tls_key", "", "Private key (PEM file) of tls_cert.", path{&s.tlsKey}, ""},
		{"admin", "127.0.0.1:8791", "Where /healthz, /readyz, /status, /metrics and /runs are; off for none. Any address but a loopback one needs admin_token.", address{&s.admin, true}, ""},
		{"admin_token", "", "Bearer token that everything there but the health checks asks for: env:NAME, file:PATH or the token itself.", secret{&s.adminToken, lookup}, ""},
		{"drain", "30s", "How long streams may go on after the first SIGTERM. What is left then ends with an error. A second signal ends everything at once.", d(&s.drain, 0, day), ""},

		{keyUpstreams, "", "Providers by name: NAME=URL; in the file a URL or a mapping. openai, anthropic and gemini exist without being listed. Each is also reachable under /u/NAME/.", &s.upstreams, "Upstreams"},
		{"ca_file", "", "Certificates (PEM file) to trust for upstreams and forward proxies, besides the system's.", path{&s.caFile}, ""},
		{"proxy", "", "Forward proxy on the way to upstreams: http://, https:// or socks5://[user:password@]host:port; off for none. Empty: HTTPS_PROXY and HTTP_PROXY. Loopback addresses are always reached directly.", forwardProxy{&s.forward}, ""},
		{"no_proxy", "", "Where it is not used: names (with their subdomains), addresses and networks, separated by commas. Empty: NO_PROXY.", freeText{&s.noForward}, ""},
		{"dial_timeout", "10s", "Name resolution, connecting and TLS together.", d(&s.client.DialTimeout, ms, time.Hour), ""},

		{keyRoutes, "", "Where requests for a model go, and where else: MODEL=UPSTREAM,UPSTREAM/MODEL …; in the file a list. * stands for any letters. docs/ROUTES.md has the rules.", &s.routes, "Routes"},
		{"breaker_failures", "5", "Failures within breaker_window, four fifths of all that happened there, for which a model of an upstream is left alone; 0 for never.", count{&s.proxy.Breaker.Failures, 0, 1_000_000, true}, ""},
		{"breaker_window", "30s", "See breaker_failures; it rolls.", d(&s.proxy.Breaker.Window, 10*ms, time.Hour), ""},
		{"breaker_open", "15s", "For how long. Then one request at a time is let through until one is answered.", d(&s.proxy.Breaker.Open, 10*ms, time.Hour), ""},

		{"headers", "60s", "Longest wait for the response head of a streaming call; off for none.", orOff(&w.Headers), "Silence that counts as an interruption"},
		{"headers_whole", "600s", "The same for a call that does not stream, whose head comes with the answer.", orOff(&w.HeadersWhole), ""},
		{"first_token", "600s", "Longest wait for the first visible content.", orOff(&w.FirstToken), ""},
		{"idle", "60s", "Longest silence in bytes while text or tool arguments flow.", orOff(&w.Idle), ""},
		{"progress", "180s", "Longest time without content once a turn has begun; pings are no content.", orOff(&w.Progress), ""},
		{"progress_quiet", "600s", "The same while the model reasons or a provider-side tool runs.", orOff(&w.ProgressQuiet), ""},
		{"floor", "0", "Bytes of text or arguments a second, on average over floor_span, that a flowing stream must deliver; 0 for no floor.", count{&w.Floor, 0, 1 << 30, false}, ""},
		{"floor_span", "30s", "See floor.", d(&w.FloorSpan, ms, day), ""},
		{"grace", "2s", "How long late usage and the terminator are awaited after the end of a turn.", d(&r.Grace, ms, time.Hour), ""},

		{"max_recoveries", "3", "Recoveries per request; 0 for none. One that delivers new content earns one back.", count{&r.Recoveries, 0, 1000, true}, "Recovery"},
		{"max_earned", "10", "How many recoveries can be earned back.", count{&r.MaxEarned, 0, 1000, true}, ""},
		{"wait_budget", "120s", "Sum of all waiting between the attempts of one request.", d(&r.WaitBudget, ms, day), ""},

		{"hold", "10s", "How long the response head waits for the first visible content.", d(&r.Hold, ms, time.Hour), "What the client feels"},
		{"heartbeat", "10s", "Longest silence towards a client.", d(&r.Heartbeat, 10*ms, time.Hour), ""},

		{"store", "memory", "Where unfinished turns are kept: memory, file:DIR (one process), redis://[user:password@]host[:port][/db], rediss://…, redis+sentinel://host[,host...]/master or redis+cluster://host[,host...].", storeValue{&s.store}, "State"},
		{"adopt_identical", "true", "A request that names no run takes over an identical one of its caller, at most 10 minutes old, whose process died. false: only if its SDK says that it is a retry.", boolean{&s.adoptIdentical}, ""},
		{"scope_key", "", "Key of the hash that tells callers apart: env:NAME, file:PATH or the key itself, at least 16 characters. Without one the store keeps one for all that share it.", secret{&s.scopeKey, lookup}, ""},
		{"scope_header", "", "A header of requests that tells callers apart in place of the credential, which may then rotate; only where callers cannot choose its value. Without the header the credential counts.", headerName{&s.proxy.ScopeHeader}, ""},
		{"seal_key", "", "Encrypts what is kept: 32 bytes in hex or base64, as env:NAME, file:PATH or the key itself. To rotate, put the new key first and keep the old ones behind it, by spaces or on lines of their own. The memory store needs none.", sealKeys{&s.seal, lookup}, ""},
		{"flush", "50ms", "How far text may run ahead of its checkpoint, in time …", d(&r.Flush, ms, time.Minute), ""},
		{"flush_bytes", "32KiB", "… and in bytes.", size[int]{&r.FlushBytes, 1, 64 * mib}, ""},
		{"ack_wait", "25ms", "How long bytes that would make the client act wait for their checkpoint.", d(&s.proxy.AckWait, ms, time.Minute), ""},
		{"remember", "24h", "How long later requests of a conversation find what a broken turn left for them: calls that were cut, response ids that the provider does not know.", d(&s.proxy.Remember, time.Second, 30*day), ""},
		{"max_kept", "8MiB", "Most that is kept of one turn under such an id, its input and its output.", size[int]{&s.proxy.MaxKept, kib, 64 * mib}, ""},
		{"ledger", "true", "Keep the runs that are seen, their steps and tool calls, for /runs on the admin listener (docs/LEDGER.md).", boolean{&s.ledger}, ""},

		{"max_streams", "20000", "Requests in flight; more wait in line.", count{&s.proxy.MaxStreams, 1, 10_000_000, false}, "Limits"},
		{"max_per_caller", "0", "Of those, how many of one credential; 0 for as many.", count{&s.proxy.MaxPerCaller, 0, 10_000_000, false}, ""},
		{"max_queue", "1000", "Requests in line; more are answered with 429 …", count{&s.proxy.MaxQueue, 1, 10_000_000, false}, ""},
		{"queue_wait", "5s", "… as is one that waited so long; off for no line.", orOff(&s.proxy.QueueWait), ""},
		{"max_body", "64MiB", "Largest request that is protected; a larger one is relayed unprotected.", size[int64]{&s.proxy.MaxBody, kib, maxBody}, ""},
		{"max_header", "32KiB", "Largest request head.", size[int]{&s.proxy.MaxHeader, kib, 16 * mib}, ""},
		{"max_event", "64MiB", "Largest event of a provider's stream.", size[int]{&r.MaxEvent, kib, 1024 * mib}, ""},
		{"max_whole", "64MiB", "Largest answer to a call that does not stream that is checked before it is passed on.", size[int]{&r.MaxWhole, kib, 1024 * mib}, ""},
		{"max_turn", "64MiB", "Most that one turn may say; beyond it the turn is given up, so that memory stays bounded.", size[int]{&r.MaxTurn, kib, 1024 * mib}, ""},
		{"max_blocks", "10000", "Most blocks (texts, calls) of one such turn.", count{&r.MaxBlocks, 1, 10_000_000, false}, ""},
		{"header_timeout", "30s", "For a request head to arrive.", d(&s.proxy.HeaderTimeout, 10*ms, day), ""},
		{"body_stall", "60s", "Without a byte of a request body.", d(&s.proxy.BodyStall, 10*ms, day), ""},
		{"write_stall", "60s", "For a client to take what was written to it.", d(&s.proxy.WriteStall, 10*ms, day), ""},
		{"client_idle", "180s", "How long an idle client connection is kept.", d(&s.proxy.IdleTimeout, 10*ms, day), ""},
		{"pass_head", "600s", "Longest wait for the response head of a request that is relayed untouched.", d(&s.proxy.PassHead, 10*ms, day), ""},

		{"log_level", "info", "debug, info, warn or error. One line per stream at info.", level{&s.logLevel}, "Watching"},
		{"log_format", "text", "text or json, on standard error.", choice{&s.logFormat, []string{"text", "json"}}, ""},
		{"otlp_endpoint", "", "OpenTelemetry collector that traces go to, as http://host:4317 (gRPC) or http://host:4318 (HTTP). Empty: the one of OTEL_EXPORTER_OTLP_ENDPOINT, else none (docs/TELEMETRY.md).", endpoint{&s.trace.Endpoint}, ""},
		{"otlp_protocol", "auto", "grpc, http/protobuf, or auto: as OTEL_EXPORTER_OTLP_PROTOCOL says, else by the port.", protocol{&s.trace.Protocol}, ""},
	}
}
