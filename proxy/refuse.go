package proxy

import (
	"io"

	"github.com/valyala/fasthttp"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/openaichat"
)

// refusals are the words that OpenAI's dialects have beside a status. The others say
// it by the status, in words of their own.
var refusals = map[int]struct{ kind, code string }{
	fasthttp.StatusBadRequest:                  {"invalid_request_error", "invalid_request"},
	fasthttp.StatusNotFound:                    {"invalid_request_error", "unknown_upstream"},
	fasthttp.StatusRequestTimeout:              {"invalid_request_error", "request_timeout"},
	fasthttp.StatusUpgradeRequired:             {"invalid_request_error", "upgrade_required"},
	fasthttp.StatusRequestHeaderFieldsTooLarge: {"invalid_request_error", "header_too_large"},
	fasthttp.StatusTooManyRequests:             {"rate_limit_error", "too_many_requests"},
	fasthttp.StatusInternalServerError:         {"server_error", "internal_error"},
	fasthttp.StatusBadGateway:                  {"server_error", "upstream_unreachable"},
	fasthttp.StatusServiceUnavailable:          {"server_error", "draining"},
	fasthttp.StatusGatewayTimeout:              {"server_error", "upstream_timeout"},
}

// tongue is the dialect that the caller of a request understands.
func (r *route) tongue() dialect.Dialect {
	if r.speaks != nil {
		return r.speaks
	}
	return r.to.family
}

// refuse answers for Unbroken itself, in the error shape that the caller's SDK
// reads. Nothing of the request is repeated in it.
func refuse(ctx *fasthttp.RequestCtx, family dialect.Dialect, status int, message string) {
	body := refusalBody(family, status, message)
	ctx.Response.Reset()
	bare(&ctx.Response.Header)
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	ctx.SetBody(body)
}

// decline is refuse for what nobody counts and no stream's line tells: without a line of its
// own an operator would not know of it.
func (s *Server) decline(ctx *fasthttp.RequestCtx, family dialect.Dialect, status int, message string) {
	s.cfg.Log.Info("a request is refused", "status", status, "why", message)
	refuse(ctx, family, status, message)
}

// refusal is what refuse says, as a response.
func refusal(family dialect.Dialect, status int, message string) response {
	body := refusalBody(family, status, message)
	h := blank()
	h.SetStatusCode(status)
	h.SetContentType("application/json")
	return response{head: h, size: int64(len(body)), exchange: says(func(w io.Writer) error {
		_, err := w.Write(body)
		return err
	})}
}

func refusalBody(family dialect.Dialect, status int, message string) []byte {
	if family == nil {
		family = openaichat.Dialect{}
	}
	f := dialect.Failure{Status: status, Message: "unbroken: " + message}
	switch family.Name() {
	case "chat", "completions", "responses":
		f.Type, f.Code = refusals[status].kind, refusals[status].code
	}
	_, body := family.ErrorBody(f)
	return body
}
