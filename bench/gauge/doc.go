// Package gauge measures what a proxy costs: its CPU per event and per call, its
// memory per open stream, and the latency that it adds, side by side with peers.
//
// Its law: whatever is compared is measured in the same run, one peer after the
// other, several times over, and what counts are the medians of the ratios of
// neighbours. Absolute numbers are shown and never compared: machines are noisy.
//
// A run is a provider and a load in this process, and the proxies beside it as
// processes of their own. The provider stamps every event with the time it was
// sent, inside the text, so that the load knows the latency of each without asking
// anybody. CPU and memory are the kernel's books of the proxy's processes alone.
// Where streams break the provider is faultinject's, which continues as a model does,
// and notes when it was asked and when it spoke.
//
// docs/BENCH.md is the manual.
package gauge
