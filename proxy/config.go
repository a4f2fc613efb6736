package proxy

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/ledger"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/upstream"
)

// Config configures a [Server]. The zero value of each field means the default
// named beside it.
type Config struct {
	// Upstreams by name. "openai" (https://api.openai.com), "anthropic"
	// (https://api.anthropic.com) and "gemini"
	// (https://generativelanguage.googleapis.com) exist even if they are not listed.
	Upstreams []Upstream
	// Routes in order; the first that matches a request counts.
	Routes []Route
	// Breaker says when an upstream is left alone.
	Breaker BreakerConfig
	// Relay is the policy of every stream; Targets, Events and Seed are set
	// per request.
	Relay relay.Config
	// Client opens attempts; nil: one of the server's own, which Shutdown
	// closes.
	Client *upstream.Client
	// Store keeps unfinished turns; nil: in memory.
	Store checkpoint.Store
	// ScopeKey keys the hash that tells callers apart; nil: one that the store
	// keeps, so that all who share it agree, else random, so that no other
	// process and no later one shares a caller's turns.
	ScopeKey []byte
	// ScopeHeader names a header that tells callers apart in place of their
	// credential, which may then rotate (DESIGN §13). Whoever can choose its value
	// is who it names. Empty, or a request without it: the credential counts.
	ScopeHeader string
	// AdoptRetriesOnly: a request that names no run takes over a turn that lost
	// its process only if its SDK says that it is a retry, not because it is
	// identical (DESIGN §8).
	AdoptRetriesOnly bool
	Observer         Observer     // nil: none
	Log              *slog.Logger // nil: none

	// MaxStreams bounds the requests in flight (20,000), MaxPerCaller those of
	// one credential (0: as many). What is more waits for QueueWait (5 s;
	// negative: not at all), MaxQueue at most (1,000), and is told 429 then.
	MaxStreams, MaxPerCaller, MaxQueue int
	QueueWait                          time.Duration

	MaxBody   int64 // bytes of a protected request, coded or plain; 64 MiB
	MaxHeader int   // bytes of a request head, held while its connection lives; 16 KiB

	HeaderTimeout time.Duration // for a request head to arrive; 30 s
	BodyStall     time.Duration // without a byte of a request body; 60 s
	WriteStall    time.Duration // for one write to a client to be taken; 60 s
	// IdleTimeout is how long a client's idle connection is kept; 180 s, longer
	// than common client pools keep theirs (FIELD-REPORTS F15).
	IdleTimeout time.Duration
	// PassHead bounds the wait for the response head of a request that is
	// relayed untouched; 600 s.
	PassHead time.Duration
	// AckWait is how long bytes that would make the client act wait for their
	// checkpoint (DESIGN §8); 25 ms.
	AckWait time.Duration

	// Ledger keeps the runs that the proxy sees (DESIGN §9); nil: none are kept.
	Ledger ledger.Store

	// Remember is how long later requests of a conversation find what an earlier
	// turn left for them (DESIGN §6); 24 h.
	Remember time.Duration
	// MaxKept bounds what is kept of one spliced turn, its input and its output,
	// in bytes; 8 MiB.
	MaxKept int
}

// Upstream is a provider, as configuration names it.
type Upstream struct {
	// Name is a path segment: the upstream is reachable under /u/<name>/.
	Name string
	// URL is the base URL; [Join] says how paths are put behind it.
	URL string
	// Dialect restricts which requests are protected: the name of a dialect
	// ([Dialects]). Empty: the dialect follows the path.
	Dialect string
	// Header is added to every request, replacing fields of the same name.
	Header upstream.Header
	// Credential, if its Name is set, replaces whatever credential the caller
	// sent.
	Credential upstream.Field
	Host, SNI  string // override what the URL says
	HTTP1      bool   // never offer HTTP/2
	// Upgrade is [Route.Upgrade] for every request that names this upstream.
	Upgrade bool
	TLS     *upstream.TLSOptions
	// Abilities are matched before the house's own table.
	Abilities []dialect.AbilityRule
}

func (c Config) withDefaults() Config {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&c.HeaderTimeout, 30*time.Second)
	set(&c.BodyStall, 60*time.Second)
	set(&c.WriteStall, 60*time.Second)
	set(&c.IdleTimeout, 180*time.Second)
	set(&c.PassHead, 600*time.Second)
	set(&c.AckWait, 25*time.Millisecond)
	set(&c.Remember, 24*time.Hour)
	set(&c.QueueWait, 5*time.Second)
	set(&c.Breaker.Window, 30*time.Second)
	set(&c.Breaker.Open, 15*time.Second)
	if c.Breaker.Failures == 0 {
		c.Breaker.Failures = 5
	}
	if c.MaxStreams == 0 {
		c.MaxStreams = 20_000
	}
	if c.MaxQueue == 0 {
		c.MaxQueue = 1000
	}
	if c.MaxBody == 0 {
		c.MaxBody = 64 << 20
	}
	if c.MaxKept == 0 {
		c.MaxKept = 8 << 20
	}
	if c.MaxHeader == 0 {
		c.MaxHeader = 16 << 10
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Upstreams = append([]Upstream(nil), c.Upstreams...)
	for _, def := range []Upstream{
		{Name: "openai", URL: "https://api.openai.com"},
		{Name: "anthropic", URL: "https://api.anthropic.com"},
		{Name: "gemini", URL: "https://generativelanguage.googleapis.com"},
	} {
		if !hasUpstream(c.Upstreams, def.Name) {
			c.Upstreams = append(c.Upstreams, def)
		}
	}
	return c
}

func hasUpstream(us []Upstream, name string) bool {
	for i := range us {
		if us[i].Name == name {
			return true
		}
	}
	return false
}

// Validate reports, in one line each, what makes no sense.
func (c Config) Validate() error {
	var errs []error
	seen := map[string]bool{}
	for i := range c.Upstreams {
		u := &c.Upstreams[i]
		if seen[u.Name] {
			errs = append(errs, fmt.Errorf("upstream %q is defined twice", u.Name))
		}
		seen[u.Name] = true
		if _, err := u.parse(); err != nil {
			errs = append(errs, err)
		}
	}
	for _, p := range c.RouteProblems() {
		errs = append(errs, p)
	}
	for name, n := range map[string]int64{
		"MaxStreams": int64(c.MaxStreams), "MaxPerCaller": int64(c.MaxPerCaller), "MaxQueue": int64(c.MaxQueue),
		"Breaker.Window": int64(c.Breaker.Window), "Breaker.Open": int64(c.Breaker.Open), "MaxBody": c.MaxBody, "MaxHeader": int64(c.MaxHeader),
		"HeaderTimeout": int64(c.HeaderTimeout), "BodyStall": int64(c.BodyStall), "WriteStall": int64(c.WriteStall),
		"IdleTimeout": int64(c.IdleTimeout), "PassHead": int64(c.PassHead), "AckWait": int64(c.AckWait),
		"Remember": int64(c.Remember), "MaxKept": int64(c.MaxKept),
	} {
		if n < 0 {
			errs = append(errs, fmt.Errorf("%s is negative", name))
		}
	}
	return errors.Join(errs...)
}

// parse checks an upstream and returns its base URL. Messages never quote the
// URL's user information.
func (u *Upstream) parse() (*url.URL, error) {
	if !validName(u.Name) {
		return nil, fmt.Errorf("upstream name %q: use letters, digits, '-', '_' and '.'", u.Name)
	}
	base, err := url.Parse(u.URL)
	if err != nil {
		return nil, fmt.Errorf("upstream %q: its URL cannot be parsed", u.Name)
	}
	switch {
	case base.Scheme != "http" && base.Scheme != "https" && base.Scheme != "h2c":
		return nil, fmt.Errorf("upstream %q: URL must start with https://, http:// or h2c://", u.Name)
	case base.Hostname() == "":
		return nil, fmt.Errorf("upstream %q: URL has no host", u.Name)
	case !validPort(base.Port()):
		return nil, fmt.Errorf("upstream %q: port %s does not exist: the last one is 65535", u.Name, base.Port())
	case base.User != nil:
		return nil, fmt.Errorf("upstream %q: put the credential into a header, not into the URL", u.Name)
	case base.RawQuery != "" || base.Fragment != "" || base.ForceQuery:
		return nil, fmt.Errorf("upstream %q: a base URL has no query and no fragment", u.Name)
	}
	path := strings.TrimRight(base.EscapedPath(), "/")
	for _, p := range protectedPaths {
		if strings.HasSuffix(path, p.suffix) {
			return nil, fmt.Errorf("upstream %q: give the base URL, without %s", u.Name, p.suffix)
		}
	}
	if u.Dialect != "" && dialectNamed(u.Dialect) == nil {
		return nil, fmt.Errorf("upstream %q: unknown dialect %q", u.Name, u.Dialect)
	}
	return base, nil
}

// validPort reports whether a port, of digits or empty, is one.
func validPort(s string) bool {
	if s == "" {
		return true
	}
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

// validName keeps names usable as one path segment, a metric label and a log field.
func validName(s string) bool {
	if s == "" || len(s) > 64 || s == "." || s == ".." {
		return false
	}
	for i := range len(s) {
		if !wordByte(s[i]) {
			return false
		}
	}
	return true
}

func wordByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '-' || b == '_' || b == '.'
}
