package faultinject

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// h2client speaks HTTP/2 with prior knowledge. GetBody is not set by callers,
// so the library's hidden retries stay out of the count (HOUSE §12).
func h2client(t *testing.T) *http.Client {
	tr := &http2.Transport{AllowHTTP: true, DialTLSContext: func(ctx context.Context, network, addr string, _ *tls.Config) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, addr)
	}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// unrepeatable hides the type of a reader, so that no GetBody is made of it.
type unrepeatable struct{ io.Reader }

func postH2(t *testing.T, c *http.Client, s *Server, path, body string) answerOf {
	t.Helper()
	req, err := http.NewRequestWithContext(patience(t), http.MethodPost, "http"+strings.TrimPrefix(s.H2CURL(), "h2c")+path, unrepeatable{strings.NewReader(body)})
	if err != nil {
		t.Fatal(err)
	}
	req.Header = credentials()
	res, err := c.Do(req)
	if err != nil {
		return answerOf{err: err}
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return answerOf{res.StatusCode, res.Header, string(b), err}
}

func TestHTTP2CarriesTheSameStream(t *testing.T) {
	s := start(t, Config{Scenario: "long", LongTokens: 3000})
	c := h2client(t)
	for _, d := range Dialects() {
		path, body := request(d)
		got := postH2(t, c, s, path, body)
		if got.err != nil || got.status != 200 {
			t.Fatalf("%d %v", got.status, got.err)
		}
		if h := hear(t, d, got.body); h.text != longText(3000) || !h.ended {
			t.Errorf("%s: %d bytes of text, ended %v", d, len(h.text), h.ended)
		}
	}
}

func TestHTTP2Faults(t *testing.T) {
	streamError := func(code http2.ErrCode) func(error) bool {
		return func(err error) bool {
			var se http2.StreamError
			return errors.As(err, &se) && se.Code == code
		}
	}
	refused := func(err error) bool { // the library flattens it into text
		return err != nil && strings.Contains(err.Error(), "REFUSED_STREAM")
	}
	goAway := func(err error) bool {
		return err != nil && strings.Contains(err.Error(), "GOAWAY")
	}
	for _, tc := range []struct {
		name, script string
		kept         int
		end          func(error) bool
		ending       Ending
	}{
		{"rst_stream", "attempt 1: reset-stream INTERNAL_ERROR after event 5", 5, streamError(http2.ErrCodeInternal), CutStream},
		{"rst_stream by default internal", "attempt 1: reset-stream after event 5", 5, streamError(http2.ErrCodeInternal), CutStream},
		{"enhance your calm", "attempt 1: reset-stream ENHANCE_YOUR_CALM after event 2", 2, streamError(http2.ErrCodeEnhanceYourCalm), CutStream},
		{"refused stream", "attempt 1: refused", 0, refused, CutStream},
		{"goaway that leaves the stream out", "attempt 1: goaway before headers", 0, goAway, CutGoAway},
		{"goaway that covers the stream", "attempt 1: goaway covering after event 3", -1, isNil, Complete},
		{"connection closed", "attempt 1: fin after event 5", 5, isNotNil, CutFIN},
		{"connection reset", "attempt 1: rst after event 5", 5, isNotNil, CutReset},
		{"end of stream too early", "attempt 1: polite after event 5", 5, isNil, CutPolite},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := start(t, Config{Script: MustScript(tc.script), Scenario: "text"})
			c := h2client(t)
			path, body := request(Messages)
			got := postH2(t, c, s, path, body)
			if !tc.end(got.err) {
				t.Errorf("end: %v", got.err)
			}
			if n := strings.Count(got.body, "\n\n"); tc.kept >= 0 && n != tc.kept {
				t.Errorf("%d events arrived, want %d", n, tc.kept)
			}
			list, err := s.WaitLog(patience(t), allEnded(1))
			if err != nil || list[0].Ending != tc.ending {
				t.Errorf("log: %v, %v", list[0].Ending, err)
			}
			if got := postH2(t, c, s, path, body); got.err != nil || !hear(t, Messages, got.body).ended {
				t.Errorf("the next attempt: %v", got.err)
			}
		})
	}
}

func isNotNil(err error) bool { return err != nil }

func TestHTTP2OnlyFaultsAreRefusedOverHTTP1(t *testing.T) {
	s := start(t, Config{Script: MustScript("attempt 1: goaway after event 3")})
	path, body := request(Messages)
	got := post(t, s, path, body)
	if got.status != 500 || !strings.Contains(got.body, "needs HTTP/2") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestTLSNegotiatesBothVersions(t *testing.T) {
	s := start(t, Config{TLS: true, Scenario: "text"})
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.Roots()}, ForceAttemptHTTP2: proto == "HTTP/2.0"}
		path, body := request(Chat)
		got := postWith(t, &http.Client{Transport: tr}, s.URL()+path, body)
		tr.CloseIdleConnections()
		if h := hear(t, Chat, got.body); got.err != nil || h.text != shortText {
			t.Errorf("%s: %v %q", proto, got.err, h.text)
		}
		list := s.Log()
		if want := map[string]Transport{"HTTP/1.1": HTTP1, "HTTP/2.0": HTTP2}[proto]; list[len(list)-1].Proto != string(want) {
			t.Errorf("came over %s, want %s", list[len(list)-1].Proto, want)
		}
	}
}

func TestHTTP2ClientDepartureIsSeen(t *testing.T) {
	s := start(t, Config{Script: MustScript("attempt 1: stall after event 3"), Scenario: "text"})
	c := h2client(t)
	ctx, cancel := context.WithCancel(t.Context())
	path, body := request(Chat)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http"+strings.TrimPrefix(s.H2CURL(), "h2c")+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = credentials()
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	io.Copy(io.Discard, res.Body)
	res.Body.Close()
	list, err := s.WaitLog(patience(t), allEnded(1))
	if err != nil || list[0].Ending != ClientClosed {
		t.Errorf("%v %v", list[0].Ending, err)
	}
}

// A client that says something while the connection ends gets all that was said to it, and
// then FIN: a provider's polite end of a connection is no reset. It reads nothing until the
// end has come, so that some of it is still on the provider's side then.
func TestHTTP2FINComesBehindWhatWasSaid(t *testing.T) {
	s := start(t, Config{Script: MustScript("attempt 1: fin after text 8000"), Scenario: "long", LongTokens: 16000})
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.H2CURL(), "h2c://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	fr := http2.NewFramer(conn, conn)
	path, body := request(Chat)
	var head bytes.Buffer
	enc := hpack.NewEncoder(&head)
	for name, value := range map[string]string{":method": "POST", ":scheme": "http", ":path": path, ":authority": "provider"} {
		enc.WriteField(hpack.HeaderField{Name: name, Value: value})
	}
	for name, values := range credentials() {
		enc.WriteField(hpack.HeaderField{Name: strings.ToLower(name), Value: values[0]})
	}
	for _, err := range []error{
		fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30}),
		fr.WriteWindowUpdate(0, 1<<30),
		fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head.Bytes(), EndHeaders: true}),
		fr.WriteData(1, true, []byte(body)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for fr.WritePing(true, [8]byte{}) == nil { // unasked, so that it is not answered
		}
	})
	if _, err := s.WaitLog(patience(t), allEnded(1)); err != nil {
		t.Fatal(err)
	}
	events := 0
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			if err != io.EOF {
				t.Errorf("the end: %v", err)
			}
			break
		}
		if f, ok := f.(*http2.DataFrame); ok {
			events += strings.Count(string(f.Data()), "\n\n")
		}
	}
	conn.Close()
	wg.Wait()
	if events < 8000 {
		t.Errorf("%d events", events)
	}
}
