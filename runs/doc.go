// Package runs is how an application talks to the run ledger: the HTTP API that the
// sidecar's admin listener serves, and the client that an agent written in Go uses.
//
// An agent that wants to know, after a crash, what it may safely do:
//
//	c := runs.Client{URL: "http://127.0.0.1:8791", Header: http.Header{"Authorization": {"Bearer " + key}}}
//	run, err := c.Claim(ctx, "run-17", runs.Declaration{Reports: true})
//	advice, err := run.Recovery(ctx)
//	for _, call := range advice.Calls {
//		switch call.Advice {
//		case runs.Execute, runs.Replay:
//			if err := run.Start(ctx, call.Op, call.Attempt); err != nil {
//				return err // not acknowledged: do not begin
//			}
//			run.Result(ctx, call.Op, call.Attempt, effect())
//		…
//
// The law of the package: what was not acknowledged did not happen. A call that
// fails with anything but a [*Refusal] may have taken effect or not; the client has
// repeated it, under the same key, as long as its context allowed, and whoever
// repeats it later is answered as the first time.
//
// The rules themselves are in package ledger; here they are only spelled.
package runs
