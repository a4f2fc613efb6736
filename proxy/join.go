package proxy

import "strings"

// Join puts a request's path and query behind the path of a base URL
// (FIELD-REPORTS F19):
//
//	base path       request                  upstream
//	(none), "/"     /v1/messages             /v1/messages
//	/v1, /v1/       /v1/messages             /v1/messages
//	/api/v1         /v1/chat/completions     /api/v1/chat/completions
//	/v1/openai      /v1/chat/completions     /v1/openai/chat/completions
//	/proxy          /v1/messages             /proxy/v1/messages
//	/beta           /chat/completions        /beta/chat/completions
//
// A base path that holds a version segment ("v1", "v1beta", "v4") is the root of
// the API: it stands for the request's leading "/v1", or for a leading segment
// equal to its own version. Any other base path goes in front. At the joint
// there is one slash; nothing else is touched, neither escapes nor ";" nor "//"
// nor a trailing slash.
func Join(base, request string) string {
	base = strings.TrimSuffix(base, "/")
	if base == "" {
		return request
	}
	if v := version(base); v != "" {
		if rest, ok := cutSegment(request, "v1"); ok {
			request = rest
		} else if rest, ok := cutSegment(request, v); ok {
			request = rest
		}
	}
	if request == "" || request[0] == '?' {
		return base + request
	}
	return base + "/" + strings.TrimPrefix(request, "/")
}

// version returns the last version segment of a base path.
func version(base string) string {
	found := ""
	for seg := range strings.SplitSeq(base, "/") {
		if len(seg) >= 2 && seg[0] == 'v' && seg[1] >= '0' && seg[1] <= '9' {
			found = seg
		}
	}
	return found
}

// cutSegment removes the leading segment seg from a path and query.
func cutSegment(request, seg string) (string, bool) {
	rest, ok := strings.CutPrefix(request, "/"+seg)
	if !ok || rest != "" && rest[0] != '/' && rest[0] != '?' {
		return request, false
	}
	return rest, true
}
