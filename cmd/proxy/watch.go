package main

import (
	"context"
	"fmt"
	"time"

	"github.com/unbroken-llm/unbroken/proxy"
	"github.com/unbroken-llm/unbroken/statuspage"
	"github.com/unbroken-llm/unbroken/telemetry"
)

// watching is what observes the streams of a server.
type watching struct {
	metrics *telemetry.Prometheus
	board   *statuspage.Board
	traces  *telemetry.Traces // nil: nobody wants them
}

// tracesClose bounds what is still exported when the process ends.
const tracesClose = 2 * time.Second

// watch begins to watch.
func watch(ctx context.Context, env environment, w *wired) (*watching, error) {
	seen := &watching{metrics: telemetry.NewPrometheus(), board: statuspage.NewBoard(nil)}
	if !w.trace.Wanted(env.lookup) {
		return seen, nil
	}
	var err error
	if seen.traces, err = telemetry.OpenTraces(ctx, w.trace); err != nil {
		return nil, err
	}
	return seen, nil
}

func (s *watching) observer() proxy.Observer {
	all := telemetry.Fan{s.metrics, s.board}
	if s.traces != nil {
		all = append(all, s.traces)
	}
	return all
}

func (s *watching) close() {
	if s.traces == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), tracesClose)
	defer cancel()
	_ = s.traces.Close(ctx) // what could not be exported is lost
}

// endpoint is the URL of a collector.
type endpoint struct{ p *string }

func (v endpoint) set(text string) error {
	if text != "" {
		if err := telemetry.ParseEndpoint(text); err != nil {
			return err
		}
	}
	*v.p = text
	return nil
}

func (v endpoint) String() string { return *v.p }

// protocol is one of OTLP's, or empty for auto.
type protocol struct{ p *string }

const auto = "auto"

var protocols = []string{auto, telemetry.GRPC, telemetry.HTTP}

func (v protocol) set(text string) error {
	switch text {
	case telemetry.GRPC, telemetry.HTTP:
		*v.p = text
	case auto:
		*v.p = ""
	default:
		return fmt.Errorf("%q is not known: use %s, %s or %s", text, auto, telemetry.GRPC, telemetry.HTTP)
	}
	return nil
}

func (v protocol) String() string {
	if *v.p == "" {
		return auto
	}
	return *v.p
}

func (endpoint) kind() string { return "URL" }
func (protocol) kind() string { return "WORD" }
