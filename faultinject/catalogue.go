package faultinject

// A faultEntry is one word of the script language.
type faultEntry struct {
	name  string
	parse func(*words) (Fault, error)
	usage string
}

// catalogue lists every fault. A new fault is a file and a line here.
var catalogue = []faultEntry{
	{"rst", parseRST, "rst [AT]: reset the TCP connection"},
	{"fin", parseFIN, "fin [AT]: close the connection without a last chunk"},
	{"cut", parseFIN, "cut [AT]: the same as fin"},
	{"polite", parsePolite, "polite [AT]: end the body properly, too early"},
	{"eof10", parseEOF10, "eof10 [AT]: a body delimited by the close, closed early (HTTP/1.1)"},
	{"half", parseHalf, "half [with fin|rst|polite] [keeping BYTES] [AT]: end inside an event"},
	{"stall", parseStall, "stall [DURATION] [AT]: silence, for good without a duration"},
	{"pings", parsePings, "pings [every DURATION] [AT]: nothing but pings from here on"},
	{"keepalives", parseComments, "keepalives [every DURATION] [AT]: nothing but comments from here on"},
	{"warm", parseWarm, "warm [every DURATION]: the finish, then no terminator and comments for ever"},
	{"trickle", parseTrickle, "trickle [BYTES] [every DURATION]: the whole stream in small pieces"},
	{"error", parseInBand, "error [KIND] [as SHAPE] [AT]: an error inside the 200 stream"},
	{"reset-stream", parseResetStream, "reset-stream [CODE] [AT]: RST_STREAM (HTTP/2)"},
	{"goaway", parseGoAway, "goaway [covering] [CODE] [AT]: GOAWAY (HTTP/2)"},
	{"refused", parseRefused, "refused: REFUSED_STREAM before anything (HTTP/2)"},
	{"status", parseStatus, "status CODE [retry-after SECONDS] [retry-after date DURATION] [retry-after-ms MS] [should-retry true|false]"},
	{"garbage", parseGarbage, "garbage [AT]: an event that is not JSON"},
	{"bad-crc", parseBadCRC, "bad-crc [prelude] [AT]: a frame whose checksum does not match (Bedrock)"},
	{"duplicate", parseDuplicate, "duplicate [AT]: one event twice"},
	{"no-blank-line", parseUnterminated, "no-blank-line: the last event lacks its blank line, a frame its last byte"},
	{"no-terminal", parseNoTerminal, "no-terminal: everything but the terminal event, then a polite end"},
	{"after-end", parseTrailer, "after-end: content after the terminal event, then a hang"},
	{"empty", parseHollow("empty"), "empty: a 200 without a body"},
	{"only-comments", parseHollow("only-comments"), "only-comments: a 200 that says nothing"},
	{"only-done", parseHollow("only-done"), "only-done: a 200 with nothing but [DONE]"},
	{"only-blank", parseHollow("only-blank"), "only-blank: a 200 with nothing but blank lines"},
	{"html", parseHollow("html"), "html: a 200 with a web page"},
	{"content-type", parseMislabel, "content-type TYPE|none: the stream under another label"},
	{"gzip", parseGzip, "gzip: compressed, asked for or not"},
	{"br", parseBrotli, "br: compressed with brotli, asked for or not"},
	{"length", parseLength, "length: announce the whole length; combine with a cut"},
}

// FaultUsage returns one line for every fault of the script language.
func FaultUsage() []string {
	lines := make([]string, len(catalogue))
	for i, e := range catalogue {
		lines[i] = e.usage
	}
	return lines
}

func parseFault(name string, w *words) (Fault, bool, error) {
	for _, e := range catalogue {
		if e.name == name {
			f, err := e.parse(w)
			return f, true, err
		}
	}
	return nil, false, nil
}

func faultNames() []string {
	names := make([]string, len(catalogue))
	for i, e := range catalogue {
		names[i] = e.name
	}
	return sorted(names)
}
