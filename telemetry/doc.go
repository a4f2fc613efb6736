// Package telemetry shows what the proxy does to those who run it: Prometheus
// metrics, and OpenTelemetry traces for whoever collects them.
//
// Its law: it reads and never decides. Nothing here is called per event, a note costs
// no allocation, nothing waits for a collector, and a collector that is away costs a
// line in the log. Every label value is from a closed list or from the
// configuration, never from a client or a provider: names.go is the whole list, and
// METRICS.md is its text, held equal by a test. What clients choose (models, run ids)
// is in spans only.
package telemetry
