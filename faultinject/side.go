package faultinject

import (
	"fmt"
	"net/http"
	"strings"
)

// models are what the models endpoint lists.
var models = []string{"claude-sonnet-4-5", "claude-opus-4-6", "claude-haiku-4-5", "gpt-5.1", "gpt-4.1"}

// side serves everything but the message endpoints: what agents ask besides.
func (s *Server) side(id int, path string, in received, w wire) Ending {
	rid := "req_" + label(s.cfg.Seed, fmt.Sprint(id))
	d := Chat
	if in.header.Get("Anthropic-Version") != "" || strings.Contains(path, "/messages") {
		d = Messages
	}
	ok := func(body string) Ending {
		s.log.update(id, func(x *Exchange) { x.Status = http.StatusOK })
		return whole(w, http.StatusOK, rid, []byte(body), Complete)
	}
	if response, act, found := storedPath(path); found {
		return s.stored(id, response, act, in, w)
	}
	if end, ok := s.googleSide(id, path, in, w); ok {
		return end
	}
	switch {
	case strings.HasSuffix(path, "/messages/count_tokens") && in.method == http.MethodPost:
		return ok(fmt.Sprintf(`{"input_tokens":%d}`, max(1, len(in.body)/4)))
	case strings.HasSuffix(path, "/models") && in.method == http.MethodGet:
		list := make([]string, len(models))
		for i, m := range models {
			list[i] = modelJSON(d, m)
		}
		if d == Messages {
			return ok(`{"data":[` + strings.Join(list, ",") + `],"has_more":false,"first_id":` + quote(models[0]) + `,"last_id":` + quote(models[len(models)-1]) + `}`)
		}
		return ok(`{"object":"list","data":[` + strings.Join(list, ",") + `]}`)
	case strings.Contains(path, "/models/") && in.method == http.MethodGet:
		return ok(modelJSON(d, path[strings.LastIndex(path, "/models/")+len("/models/"):]))
	case path == "/" && (in.method == http.MethodGet || in.method == http.MethodHead):
		return ok(`{}`)
	}
	return s.refuse(id, d, &Refusal{Status: 404, Type: "not_found_error", Message: "Not found: " + in.method + " " + path}, w)
}

func modelJSON(d Dialect, name string) string {
	if d == Messages {
		return `{"type":"model","id":` + quote(name) + `,"display_name":` + quote(name) + `,"created_at":"2026-01-01T00:00:00Z"}`
	}
	return `{"id":` + quote(name) + `,"object":"model","created":1770000000,"owned_by":"faultinject"}`
}
