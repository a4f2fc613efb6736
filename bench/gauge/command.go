package gauge

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
)

// flags are the bench's command line.
type flags struct {
	binary, scenarios, peers, provider, wire string
	others                                   []Peer
	rounds                                   int
	settle, window                           time.Duration
	json, html                               string
	baseline                                 string
	write                                    bool
	heals, turns                             int

	redis bool

	soak      bool
	soakFor   time.Duration
	soakEvery time.Duration
	soakOut   string
	soakPeer  string

	target Target
	keyEnv string
}

// Flags are those that [Command] takes, with their defaults where this program is not the
// proxy itself: for documents and completion.
func Flags() *flag.FlagSet { return new(flags).set("") }

// set is the flags as they are parsed; binary is the default of -unbroken.
func (c *flags) set(binary string) *flag.FlagSet {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&c.binary, "unbroken", binary, "the unbroken binary that is measured; empty: it takes no part (in unbroken bench: this one, if not told otherwise)")
	f.StringVar(&c.scenarios, "scenarios", "flood,paced1000,paced250,idle5000,json", "which to run, in order: those, body50, store250, linear (six of them), heal, faultrate")
	f.StringVar(&c.peers, "peers", strings.Join(usualPeers, ","), "who takes part, also reverse-h2 and unbroken-h2, which ask over HTTP/2; empty: only those of -peer")
	f.StringVar(&c.wire, "wire", "chat", "the protocol: chat (OpenAI Chat Completions) or messages (Anthropic)")
	f.IntVar(&c.rounds, "rounds", 5, "measurements of each peer in each scenario of load")
	f.DurationVar(&c.settle, "settle", 2*time.Second, "how long a load flows before it is measured")
	f.DurationVar(&c.window, "window", 5*time.Second, "how long it is measured")
	f.IntVar(&c.heals, "heals", HealSize.Turns/HealSize.Every, "turns that heal cuts, for each cause and proxy")
	f.IntVar(&c.turns, "turns", RateSize.Turns, "turns of faultrate, for each rate and peer")
	f.StringVar(&c.json, "json", "", "file for the samples")
	f.StringVar(&c.html, "html", "", "file for the report")
	f.StringVar(&c.baseline, "baseline", "", "file of ratios to compare with; a regression of more than 15 % is an error")
	f.BoolVar(&c.write, "write-baseline", false, "write the ratios of this run to that file instead; those of other scenarios stay")
	f.StringVar(&c.provider, "provider", "127.0.0.1:0", "where the simulated provider of the loads listens, which the peers that others start must ask")
	f.Func("peer", "a proxy that runs already and asks -provider, NAME=http://HOST:PORT[,PID] (repeatable); its CPU and memory are those of the process PID. It takes part in loads", func(s string) error {
		p, err := other(s)
		c.others = append(c.others, p)
		return err
	})
	f.BoolVar(&c.redis, "redis", false, "measure instead what checkpoints cost a Redis")
	f.BoolVar(&c.soak, "soak", false, "load Unbroken for a long time instead, a tenth of all attempts cut, and fail if anything grows")
	f.DurationVar(&c.soakFor, "for", SoakSize.For, "of the soak: how long")
	f.DurationVar(&c.soakEvery, "every", SoakSize.Every, "of the soak: time between two looks")
	f.StringVar(&c.soakOut, "out", "", "of the soak: directory for soak.json, soak.md and soak.svg")
	f.StringVar(&c.soakPeer, "soak-peer", "unbroken-redis", "of the soak: unbroken-redis or unbroken-memory")
	f.StringVar(&c.target.URL, "target", "", "measure instead a provider or proxy by its base URL, as SDKs take it. It is asked -requests times, and that may cost money")
	f.StringVar(&c.keyEnv, "key-env", "", "of the target: environment variable with its key")
	f.StringVar(&c.target.Model, "model", "", "of the target: model to ask")
	f.IntVar(&c.target.Requests, "requests", 10, "of the target: how many, in all")
	f.IntVar(&c.target.Parallel, "parallel", 2, "of the target: at a time")
	f.IntVar(&c.target.Tokens, "tokens", 300, "of the target: most output tokens of each; 0: the model's own limit, for models that do not take max_tokens")
	return f
}

func parse(args []string, binary string, log io.Writer) (*flags, error) {
	c := &flags{}
	f := c.set(binary)
	f.SetOutput(io.Discard) // an error is one line, not the list of all flags
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		f.SetOutput(log)
		f.Usage()
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w; see --help", err)
	case f.NArg() > 0:
		return nil, fmt.Errorf("%q is left over: what it takes are flags; see --help", f.Arg(0))
	}
	return c, c.belong(f)
}

// Command is the bench as a command line: args are its flags, self is this program as
// it can be started again with them, and binary the proxy that is measured, "" for none
// unless -unbroken names one.
func Command(ctx context.Context, args []string, self []string, binary string, out, log io.Writer) error {
	if peer := peerOf(args); peer != nil {
		return peer(args[1], args[2])
	}
	c, err := parse(args, binary, log)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	wire, err := ParseWire(c.wire)
	if err != nil {
		return err
	}
	// Found out at its end, a run of an hour would be for nothing.
	if err := errors.Join(writable(c.json), writable(c.html)); err != nil {
		return err
	}
	switch {
	case c.target.URL != "":
		return c.aim(ctx, wire, out, log)
	case c.redis:
		r, err := Redis(ctx, c.binary, log)
		if err != nil {
			return err
		}
		r.Table(out)
		return save(c.json, r)
	case c.soak:
		return c.runSoak(ctx, wire, self, out, log)
	}
	return c.compare(ctx, wire, self, out, log)
}

// writable is an error if name is given and no file can be written there. What the file has
// is kept, and where there is none, none is left behind.
func writable(name string) error {
	if name == "" {
		return nil
	}
	_, was := os.Lstat(name)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	err = f.Close()
	if errors.Is(was, fs.ErrNotExist) {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// compare runs scenarios with all peers.
func (c *flags) compare(ctx context.Context, wire Wire, self []string, out, log io.Writer) error {
	if c.baseline != "" && c.rounds < leastRounds {
		return fmt.Errorf("%d rounds: a baseline needs the medians of at least %d", c.rounds, leastRounds)
	}
	if c.write && c.baseline == "" {
		return errors.New("--write-baseline needs --baseline FILE: where to?")
	}
	if c.rounds < 1 || c.window <= 0 || c.settle < 0 || c.heals < 1 || c.turns < 1 {
		return errors.New("--rounds, --window, --heals and --turns are to be above 0, and --settle not below")
	}
	loads := Config{Provider: c.provider, Binary: c.binary, Rounds: c.rounds, Settle: c.settle, Window: c.window, Log: log, Peers: c.others}
	heal, rate := false, false
	for _, n := range strings.Split(c.scenarios, ",") {
		s, ok := Named(n)
		switch {
		case n == "heal":
			heal = true
		case n == "faultrate":
			rate = true
		case !ok:
			return fmt.Errorf("no scenario %q: they are %s, linear, heal, faultrate", n, strings.Join(names(), ", "))
		}
		for _, sc := range s {
			sc.Wire = wire
			loads.Scenarios = append(loads.Scenarios, sc)
		}
	}
	ours, err := c.known(self, log)
	if err != nil {
		return err
	}
	loads.Peers = append(ours, c.others...)
	if err := c.ready(loads.Peers, len(loads.Scenarios)); err != nil {
		return err
	}
	r := Report{Machine: thisMachine()}
	fmt.Fprintf(log, "%s\n", r.Machine)
	if len(loads.Scenarios) > 0 {
		r.Results, err = Run(ctx, loads)
	}
	if heal && ctx.Err() == nil {
		z := HealSize
		z.Wire, z.Turns = wire, c.heals*z.Every
		var fault error
		r.Healed, fault = Heal(ctx, z, ours, log)
		err = errors.Join(err, fault)
	}
	if rate && ctx.Err() == nil {
		z := RateSize
		z.Wire, z.Turns = wire, c.turns
		var fault error
		r.Rated, fault = FaultRate(ctx, z, Rates, ours, log)
		err = errors.Join(err, fault)
	}
	r.Table(out)
	if r.Empty() {
		return errors.Join(err, errors.New("nothing was measured: none of these peers takes part (in heal only Unbroken does; in faultrate neither direct nor any --peer)"))
	}
	err = errors.Join(err, save(c.json, r))
	if c.html != "" {
		err = errors.Join(err, os.WriteFile(c.html, r.Page(), 0o644))
	}
	if c.baseline != "" && err == nil {
		err = c.compareBaseline(r.Results, log)
	}
	return err
}

func (c *flags) compareBaseline(results []Result, log io.Writer) error {
	was, err := ReadBaseline(c.baseline)
	if err != nil {
		return err
	}
	if c.write {
		return save(c.baseline, was.With(Ratios(results)))
	}
	return was.Check(results, log)
}

// runSoak soaks and writes what it saw, whether or not something grew.
func (c *flags) runSoak(ctx context.Context, wire Wire, self []string, out, log io.Writer) error {
	p, err := known(c.soakPeer, c.binary, self)
	if err == nil {
		err = p.Missing()
	}
	if err != nil {
		return fmt.Errorf("soak: %s: %w", c.soakPeer, err)
	}
	if c.soakOut != "" { // found out at its end, half an hour would be for nothing
		if err := os.MkdirAll(c.soakOut, 0o755); err != nil {
			return err
		}
	}
	z := SoakSize
	z.Wire, z.For, z.Every = wire, c.soakFor, c.soakEvery
	s, err := Soak(ctx, z, p, log)
	if len(s.Trends) == 0 {
		return errors.Join(err, errors.New("the soak was too short to judge"))
	}
	if c.soakOut != "" {
		err = errors.Join(err, s.Write(c.soakOut))
	}
	fmt.Fprint(out, s.markdown())
	return errors.Join(err, s.Err())
}

// aim measures a target.
func (c *flags) aim(ctx context.Context, wire Wire, out, log io.Writer) error {
	t := c.target
	t.Wire = wire
	if t.Model == "" {
		return errors.New("which model is the target to be asked for? Add --model NAME")
	}
	if t.Requests < 1 || t.Parallel < 1 {
		return errors.New("a target needs at least one request, and one at a time")
	}
	if c.keyEnv != "" {
		if t.Key = strings.TrimSpace(os.Getenv(c.keyEnv)); t.Key == "" {
			return fmt.Errorf("the environment has no %s, which --key-env names", c.keyEnv)
		}
	}
	a, err := Aim(ctx, t, log)
	if a.Empty() { // there is nothing to show, and nothing to write
		err = errors.Join(err, a.Err())
		if t.Key == "" && a.unknown() {
			err = errors.Join(err, errors.New("it was sent no key: --key-env names the environment variable that has it"))
		}
		return err
	}
	a.Table(out)
	return errors.Join(err, a.Err(), save(c.json, a))
}

// save writes samples to a file, if there is to be one.
func save(name string, samples any) error {
	if name == "" {
		return nil
	}
	b, err := json.MarshalIndent(samples, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(b, '\n'), 0o644)
}
