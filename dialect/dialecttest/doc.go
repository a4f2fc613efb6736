// Package dialecttest is the battery that every dialect must pass, and the form
// of its golden cases.
//
// The battery knows no provider. It takes whole recorded or composed streams,
// cuts them everywhere, lets the dialect render the rest as a later attempt's,
// and decodes what a client would have received. What it asks is the promise of
// DESIGN §1 in small: one legal message, no invented end, nothing lost.
//
//	Run     the battery over cases
//	Golden  testdata/<case>/{request.json,stream.sse,want.txt,ORIGIN}
//	Format  a snapshot as text, for comparison and for want.txt
//
// Imported by tests only.
package dialecttest
