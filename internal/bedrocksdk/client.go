// Package bedrocksdk is AWS's own client of Bedrock, as tests use it: with a Bedrock API key, at an address on loopback
// that speaks plain HTTP. The SDK sends keys to https only, so that what is between the two is left out underneath it;
// what it sends and reads is otherwise its own.
package bedrocksdk

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/smithy-go/auth/bearer"
)

// New returns a client of the server at base, http://host:port with or without a path, and what closes its connections.
// It sends h with every request.
func New(base string, h http.Header, change ...func(*bedrockruntime.Options)) (c *bedrockruntime.Client, done func()) {
	plain := func(ctx context.Context, network, addr string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	t := &http.Transport{DialTLSContext: plain, DisableCompression: true}
	return bedrockruntime.New(bedrockruntime.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("https://" + strings.TrimPrefix(base, "http://")),
		HTTPClient:              &http.Client{Transport: Owning{t, h}},
		BearerAuthTokenProvider: bearer.StaticTokenProvider{Token: bearer.Token{Value: "key"}},
		AuthSchemePreference:    []string{"httpBearerAuth"},
	}, change...), t.CloseIdleConnections
}

// Once has a client try once.
func Once(o *bedrockruntime.Options) { o.RetryMaxAttempts = 1 }

// Owning gives the transport a request body of its own. This SDK closes its body when the head of the response is there,
// and now and then net/http, which was about to close it itself, takes that for a broken request and closes the
// connection under the stream, whoever is at its other end.
type Owning struct {
	http.RoundTripper
	Header http.Header // is sent along
}

// RoundTrip implements http.RoundTripper.
func (o Owning) RoundTrip(q *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	q = q.Clone(q.Context())
	q.Body = io.NopCloser(bytes.NewReader(b))
	for name, vals := range o.Header {
		q.Header[name] = vals
	}
	return o.RoundTripper.RoundTrip(q)
}
