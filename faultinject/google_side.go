package faultinject

import (
	"fmt"
	"net/http"
	"strings"
)

// geminiModels are what the models endpoint lists.
var geminiModels = []string{"gemini-2.5-flash", "gemini-2.5-pro", "gemini-3-flash-preview", "gemini-3-pro-preview", "gemini-3.8-flash"}

// googleSide serves what Google's clients ask besides; ok is false if the request
// is for somebody else.
func (s *Server) googleSide(id int, path string, in received, w wire) (end Ending, ok bool) {
	if name, act, found := interactionPath(path); found {
		return s.interaction(id, name, act, in, w), true
	}
	if call, found := readGeminiPath(path); found && in.method == http.MethodPost {
		return s.countTokens(id, call, in, w), true
	}
	at := strings.Index(path, "/v1beta")
	if at < 0 {
		return "", false
	}
	list, name, one := strings.Cut(path[at+1:], "/models")
	if !one || strings.Contains(list, "openai") || in.method != http.MethodGet {
		return s.refuse(id, Gemini, &Refusal{Status: 404, Type: "NOT_FOUND", Message: "Requested entity was not found."}, w), true
	}
	if r := checkGoogleKey(in.header, in.path); r != nil {
		return s.refuse(id, Gemini, r, w), true
	}
	body := ""
	if name = strings.TrimPrefix(name, "/"); name != "" {
		body = geminiModel(name)
	} else {
		all := make([]string, len(geminiModels))
		for i, m := range geminiModels {
			all[i] = geminiModel(m)
		}
		body = `{"models": [` + strings.Join(all, ",") + `]}`
	}
	s.log.update(id, func(x *Exchange) { x.Status = http.StatusOK })
	return whole(w, http.StatusOK, fmt.Sprint(id), []byte(body), Complete), true
}

// countTokens answers :countTokens; any other method is none.
func (s *Server) countTokens(id int, call geminiCall, in received, w wire) Ending {
	if call.method != "countTokens" {
		return s.refuse(id, Gemini, &Refusal{Status: 404, Type: "NOT_FOUND", Message: fmt.Sprintf("models/%s is not found for API version v1beta, or is not supported for %s. Call ListModels to see the list of available models and their supported methods.", call.model, call.method)}, w)
	}
	if r := checkGoogleKey(in.header, in.path); r != nil {
		return s.refuse(id, Gemini, r, w)
	}
	n := max(1, len(in.body)/4)
	s.log.update(id, func(x *Exchange) { x.Status = http.StatusOK })
	return whole(w, http.StatusOK, fmt.Sprint(id), fmt.Appendf(nil, `{"totalTokens": %d,"promptTokensDetails": [{"modality": "TEXT","tokenCount": %d}]}`, n, n), Complete)
}

func geminiModel(name string) string {
	return fmt.Sprintf(`{"name": %s,"version": "001","displayName": %s,"inputTokenLimit": 1048576,"outputTokenLimit": 65536,"supportedGenerationMethods": ["generateContent","countTokens"]}`,
		quote("models/"+name), quote(name))
}
