// Package e2e holds tests only: real clients, over real sockets, at a real proxy
// in front of the fault-injecting provider.
//
// Its law: a client is used unmodified, as its documentation says, and only its
// base URL changes. What it gets through the proxy under a fault is compared
// with what the same client gets from the provider itself without one; a failure
// that the proxy must relay, with the failure that the provider itself causes.
//
//	client ──────────────────────────────▶ faultinject     the measure
//	client ──▶ proxy ──▶ (HTTP/1.1, h2c) ─▶ faultinject     the case
//
// The Go clients run in the test's process. The others are in clients/, a Node
// project with exact versions; one Node process runs all cases, told by lines of
// JSON. The snippets of docs/CLIENTS.md are programs of their own. Tests that need it skip without Node or its modules, and fail if
// UNBROKEN_REQUIRE has the word node in it. No test needs a network.
package e2e
