package upstream

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// head is a parsed HTTP/1.x response head, hop-by-hop fields included.
type head struct {
	minor  int // HTTP/1.minor
	status int
	header Header
}

var (
	errStatusLine = errors.New("malformed status line")
	errHeaderLine = errors.New("malformed header line")
	errHeadSize   = errors.New("response head is too large")
	errSwitch     = errors.New("provider switched protocols unasked")
)

// headEnd returns the length of the head in p with its empty line, 0 while there is none. from is where an earlier, shorter p was
// searched to; the search starts two bytes before, for a terminator split there.
func headEnd(p []byte, from int) int {
	for i := max(from-2, 0); ; {
		j := bytes.IndexByte(p[i:], '\n')
		if j < 0 {
			return 0
		}
		i += j + 1
		rest := p[i:]
		if len(rest) > 0 && rest[0] == '\n' {
			return i + 1
		}
		if len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n' {
			return i + 2
		}
	}
}

// parseHead parses a whole head. Bare LF and folded lines are accepted, as in RFC 9112, sections 2.2 and 5.2; a name that is not a
// token or a value with a control character is not.
func parseHead(text string) (h head, err error) {
	line, rest := cutLine(text)
	if err := h.statusLine(line); err != nil {
		return head{}, err
	}
	h.header = make(Header, 0, strings.Count(rest, "\n"))
	for rest != "" {
		line, rest = cutLine(rest)
		if line == "" {
			break
		}
		if line[0] == ' ' || line[0] == '\t' {
			if len(h.header) == 0 {
				return head{}, errHeaderLine
			}
			last := &h.header[len(h.header)-1]
			last.Value = strings.TrimSpace(last.Value + " " + strings.Trim(line, " \t"))
			if !httpguts.ValidHeaderFieldValue(last.Value) {
				return head{}, errHeaderLine
			}
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return head{}, errHeaderLine
		}
		h.header = append(h.header, Field{name, value})
	}
	return h, nil
}

func cutLine(s string) (line, rest string) {
	line, rest, _ = strings.Cut(s, "\n")
	return strings.TrimSuffix(line, "\r"), rest
}

// statusLine parses "HTTP/1.1 200 OK"; the reason is optional, and so is the space before it.
func (h *head) statusLine(line string) error {
	if len(line) < 12 || line[:7] != "HTTP/1." || line[8] != ' ' || (len(line) > 12 && line[12] != ' ') {
		return errStatusLine
	}
	if line[7] != '0' && line[7] != '1' {
		return errStatusLine
	}
	n, err := strconv.ParseUint(line[9:12], 10, 16)
	if err != nil || n < 100 {
		return errStatusLine
	}
	h.minor, h.status = int(line[7]-'0'), int(n)
	return nil
}

// persistent reports whether the connection outlives the response (RFC 9112, section 9.3).
func (h *head) persistent() bool {
	if h.header.token("Connection", "close") || h.header.token("Proxy-Connection", "close") {
		return false
	}
	return h.minor == 1 || h.header.token("Connection", "keep-alive")
}

// idleHint is the provider's Keep-Alive: timeout=n less a second for the flight of a request, or most if that is shorter. Zero: do
// not keep the connection.
func (h *head) idleHint(most time.Duration) time.Duration {
	for param := range strings.FieldsFuncSeq(h.header.Get("Keep-Alive"), func(r rune) bool { return r == ',' || r == ' ' }) {
		if name, value, _ := strings.Cut(param, "="); strings.EqualFold(name, "timeout") {
			if n, err := strconv.ParseUint(value, 10, 31); err == nil {
				return min(most, max(0, time.Duration(n)*time.Second-time.Second))
			}
		}
	}
	return most
}

// endToEnd is the header a caller may see and relay. The head's own header is used up.
func (h *head) endToEnd() Header {
	if h.header.Has("Connection") {
		named := h.header.Values("Connection")
		return h.header.without(func(name string) bool {
			return hopByHop(name) || httpguts.HeaderValuesContainsToken(named, name)
		})
	}
	return h.header.without(hopByHop)
}
