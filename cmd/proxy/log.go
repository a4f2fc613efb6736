package main

import (
	"io"
	"log/slog"
	"time"
)

// logger writes records as log_format says.
func logger(format string, level slog.Leveler, to io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: inSeconds}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(escaping{to}, o))
	}
	return slog.New(slog.NewTextHandler(to, o))
}

// inSeconds tells every duration as a number of seconds, to the microsecond, under a name that
// says so, as metrics and traces do; slog has nanoseconds in JSON and words such as 1m2.5s in
// text. Whoever logs a duration logs it as one, without a unit in its name.
func inSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.Float64(a.Key+"_seconds", a.Value.Duration().Round(time.Microsecond).Seconds())
	}
	return a
}
