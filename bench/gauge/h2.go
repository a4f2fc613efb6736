package gauge

import (
	"io"
	"net"
	"net/http"

	"golang.org/x/net/http2"
)

// preface is how a client begins that speaks HTTP/2 with prior knowledge (RFC 9113 3.4).
const preface = "PRI "

// h2 has windows so large that it is the proxy which waits for nobody, and not the provider.
var h2 = &http2.Server{MaxConcurrentStreams: 250, MaxUploadBufferPerConnection: 1 << 20, MaxUploadBufferPerStream: 1 << 20}

// serveH2 answers on a connection that speaks HTTP/2; of it, in has read the first bytes.
func serveH2(c net.Conn, in io.Reader) {
	h2.ServeConn(readBy{c, in}, &http2.ServeConnOpts{Handler: http.HandlerFunc(answerH2), BaseConfig: &http.Server{}})
}

// readBy is a connection that is read through in.
type readBy struct {
	net.Conn
	in io.Reader
}

func (c readBy) Read(p []byte) (int, error) { return c.in.Read(p) }

func answerH2(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	wire := wireAt(r.URL.Path)
	shape, ok := shapeOf(body)
	switch {
	case !ok:
		w.WriteHeader(http.StatusBadRequest)
	case streams(body):
		w.Header().Set("Content-Type", "text/event-stream")
		_ = wire.stream(outlet{Writer: prompt{w}, frame: asIs}, shape)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, wire.document(shape))
	}
}

func asIs(dst []byte, data string) []byte { return append(dst, data...) }

// prompt sends each write at once.
type prompt struct{ http.ResponseWriter }

func (p prompt) Write(b []byte) (int, error) {
	n, err := p.ResponseWriter.Write(b)
	if err == nil {
		err = http.NewResponseController(p.ResponseWriter).Flush()
	}
	return n, err
}
