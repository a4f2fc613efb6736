package interrupt

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// retryAfter reads the provider's hint as the SDKs do (WIRE §4): retry-after-ms
// in milliseconds, else Retry-After in seconds or as an HTTP date relative to
// now. Garbage, NaN, the past and negative numbers are no hint. A hint of any
// length is kept: what is too long to wait is the planner's judgement
// (FIELD-REPORTS G5, 287441 s).
func retryAfter(header func(string) string, now time.Time) time.Duration {
	if d, ok := span(header("retry-after-ms"), time.Millisecond); ok {
		return d
	}
	v := header("retry-after")
	if d, ok := span(v, time.Second); ok {
		return d
	}
	// RFC 9110 §5.6.7: three formats, the last two obsolete but to be accepted.
	for _, layout := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC} {
		if at, err := time.Parse(layout, strings.TrimSpace(v)); err == nil {
			return max(0, at.Sub(now))
		}
	}
	return 0
}

// span reads a decimal number of units. Fractions are accepted, as the SDKs do;
// what exceeds a Duration is the longest one.
func span(v string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
	switch {
	case math.IsNaN(n) || math.IsInf(n, 0) && err == nil:
		return 0, false // spelled "NaN", "inf"
	case err != nil && !math.IsInf(n, 0): // ±Inf with an error: out of range
		return 0, false
	case n < 0:
		return 0, false
	}
	if d := n * float64(unit); d < math.MaxInt64 {
		return time.Duration(d), true
	}
	return math.MaxInt64, true
}
