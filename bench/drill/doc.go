// Drill is an outage drill. A few hundred agents talk to a provider through the proxy,
// turn after turn; the provider dies under all of them, stays away, and returns. What
// the provider was asked, what was recovered when, and how many turns came to their
// end, word for word, is written as numbers, a plot and a page:
//
//	go run ./bench/drill -out bench/results
//
// The law of the package is that the provider's side is measured, not the proxy's
// word: requests are counted where they arrive, also while nobody is there to answer.
// Only what no provider can know, who is being recovered and who stands in line, is
// asked of the proxy.
package main
