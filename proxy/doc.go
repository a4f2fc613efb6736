// Package proxy is the front door: HTTP in by fasthttp, one relay.Stream per
// protected request driven to its end, everything else relayed untouched.
//
// Its law: it performs effects and decides nothing about a turn. Effects are
// performed in the order that relay.Effects documents, by one goroutine per
// request, which is also the only one that ever writes to that client:
//
//	handler goroutine ── admit ── a call that does not stream: drive to its end;
//	        │          fasthttp writes head and body
//	        └─ a stream: takes the connection (conn.go), so that fasthttp holds no
//	           buffer for it ── goroutine of its own: drive … head, then one Write
//	           per upstream read, until the end ── the connection goes back to
//	           fasthttp when its next request begins
//	watchdog (one per server) ── rouses a driver whose deadline is due, notices
//	           clients that left or stopped reading; it never writes
//
// A body that ends in an error has its connection closed without the last chunk, so
// that a turn that was given up can never be read as one that ended (FIELD-REPORTS
// F12). HTTP/1.0 has no chunks: there the abort is a reset.
//
// A request keeps to its end the configuration that was in force when its head came
// (terms.go); Reload puts another one in force for those that come behind it.
//
// Nothing of a fasthttp.RequestCtx is kept when its handler returns.
//
// Layer 5: imports relay, the dialects, upstream, checkpoint.
package proxy
