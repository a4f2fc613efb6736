// Package sse turns the bytes of a text/event-stream into units and back.
//
// Law: the framing keeps every byte. The Raw bytes of all units plus the unfinished ones are exactly the input, so that
// what nobody needs to change passes unchanged. A unit is an event with its blank line, or one comment or blank line
// that stands between events; the latter are handed out at once, so that no heartbeat waits for the event behind it.
//
// The scanner never says "end": only the dialect's terminal event means that a stream is done (FIELD-REPORTS A1). At the
// end of input it tells how many bytes of an unfinished unit are in hand and what they would say.
//
// Parsing follows the HTML standard, section 9.2.6 (server-sent events), with these decisions:
//
//	lines       end at LF, CR or CRLF, and nowhere else: U+2028, U+2029 and U+0085 are text (FIELD-REPORTS C7)
//	BOM         one, at the start of the stream, is not part of the first field name, and stays in Raw (C8)
//	id, retry   are not interpreted; they stay in Raw
//	event only  a unit with a name and no data is handed out (browsers drop it; proxies must not)
//	size        one unit is bounded by Scanner.Limit; there is no limit on a line of its own (C1, C12)
//
// Standard library only; no allocation per event in steady state.
package sse
