// Package upstream opens attempts at providers and yields their answers as raw bytes followed by one final, typed error.
//
// Its law: bytes in, bytes out, and the truth about the end. It knows HTTP/1.1, HTTP/2, TLS and proxies; it knows nothing about
// dialects, events, plans or retries. It never repeats a request that may have reached a provider: every failure says what is safe
// (NotSent, Sent, Partial) and the caller decides. The end of a body is io.EOF only when the framing proves it complete, or when the
// body had no framing of its own, which Response.CloseDelimited tells; that the answer is whole is for the dialect to say.
//
//	Open ── dial ── tls ── write ── head ──▶ Response ── Next, Next, … ──▶ io.EOF | *Error
//	        └─────── *Error{Op, Safety, Kind} ──────┘      ▲ Wake: ErrWoken, once; the stream stays usable
//	                                                       ▲ Close: abort, or give the connection back
//
// HTTP/1.1 is a client of our own, because recovery needs to know how a body died, and because decoding the chunk framing in place
// hands out everything one read(2) delivered as one slice, without copying it to another buffer and without allocating. HTTP/2 is
// golang.org/x/net/http2 with its hidden retries turned into typed errors.
package upstream
