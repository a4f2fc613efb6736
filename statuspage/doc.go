// Package statuspage shows a person what the proxy does now: live streams, recoveries
// as they happen, the last hour, upstreams, the store, the state of the configuration, and
// the runs of the ledger with what recovery would do and why.
//
// Its law: it reads and never decides. All it serves is embedded, loads nothing from
// anywhere else, and changes nothing: every route is a GET. What clients, models and
// providers said reaches a browser as JSON and a document as text nodes; no markup is
// ever made of it. The page itself tells nothing: numbers come from /api, behind the
// admin token where there is one.
//
// What it remembers is bounded: the last recoveries, and an hour in steps of ten
// seconds. It begins anew with the process.
package statuspage
