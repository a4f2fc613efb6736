package faultinject

import "net/http"

// A wire is one response on its way to one client. All methods are called by
// the goroutine of the request.
type wire interface {
	transport() Transport
	// head sends the status and the headers, at once.
	head(status int, h http.Header) error
	// write sends body bytes, at once.
	write(p []byte) error
	// end stops the response. After EndNone with GOAWAY covering it goes on.
	end(s Step)
	// gone is closed when the client left.
	gone() <-chan struct{}
}

// received is a request that was read to its end.
type received struct {
	method, path string // the path with its query
	header       http.Header
	body         []byte
}
