package upstream

import (
	"context"
	"net"

	"golang.org/x/net/http2"
)

func newTransport(Config) *http2.Transport { return &http2.Transport{} }

type h2link struct {
	host   *host
	cc     *http2.ClientConn
	reused bool
}

func (l *h2link) open(context.Context, *Target, *Request) (*Response, *Error) { return nil, nil }
func (h *host) addH2(nc, raw net.Conn) (link, *Error)                         { return nil, nil }
func retire(cc *http2.ClientConn)                                             {}
