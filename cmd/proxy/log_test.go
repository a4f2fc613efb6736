package main

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

// A duration was a bare number of nanoseconds in JSON ("took":1204000123), and words in text
// that no two lines had in one unit.
func TestDurationsInLogsAreSeconds(t *testing.T) {
	for format, want := range map[string]string{
		"text": `took_seconds=1.204 wait.for_seconds=90 short_seconds=0.00025`,
		"json": `"took_seconds":1.204,"wait":{"for_seconds":90},"short_seconds":0.00025}`,
	} {
		var b strings.Builder
		logger(format, slog.LevelInfo, &b).Info("stream", "took", 1204*time.Millisecond+123, slog.Group("wait", slog.Duration("for", 90*time.Second)), "short", 250*time.Microsecond)
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s: %s", format, &b)
		}
	}
}
