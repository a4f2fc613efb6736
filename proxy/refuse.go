package proxy

import (
	"github.com/valyala/fasthttp"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/openaichat"
)

// refuse answers for Unbroken itself, in the error shape that the caller's SDK
// reads. Nothing of the request is repeated in it.
func refuse(ctx *fasthttp.RequestCtx, family dialect.Dialect, status int, kind, message string) {
	if family == nil {
		family = openaichat.Dialect{}
	}
	_, body := family.ErrorBody(dialect.Failure{Status: status, Type: kind, Message: "unbroken: " + message})
	ctx.Response.Reset()
	ctx.Response.Header.DisableNormalizing()
	ctx.Response.Header.SetNoDefaultContentType(true)
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	ctx.SetBody(body)
}
