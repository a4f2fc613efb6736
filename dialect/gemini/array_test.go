package gemini

import "testing"

func TestArray(t *testing.T) {
	for _, c := range []struct{ name, body, events, again string }{
		{"as Google writes it", "[{\r\n  \"a\": 1\r\n}\r\n,\r\n{\"b\":\"]},\\\"{\"}\n]\n",
			"data: {\ndata:   \"a\": 1\ndata: }\n\ndata: {\"b\":\"]},\\\"{\"}\n\n",
			"[{\n  \"a\": 1\n}\n,\r\n{\"b\":\"]},\\\"{\"}\n]\n"},
		{"an error that is no array", `{"error":{"code":503}}`, "data: {\"error\":{\"code\":503}}\n\n", "[{\"error\":{\"code\":503}}\n]\n"},
		{"nothing", "[]", "", "[]\n"},
		{"cut in an element", `[{"a":1},{"b`, "data: {\"a\":1}\n\ndata: {\"b", "[{\"a\":1}\n]\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []int{1, 2, 1000} {
				var u Unwrap
				var w Wrap
				var events, again []byte
				for b := []byte(c.body); len(b) > 0; b = b[min(size, len(b)):] {
					events = u.Append(events, b[:min(size, len(b))])
				}
				again = w.Close(w.Append(nil, events))
				if string(events) != c.events || string(again) != c.again {
					t.Errorf("by %d: %q, then %q", size, events, again)
				}
			}
		})
	}
	t.Run("signs of life are white space", func(t *testing.T) {
		var w Wrap
		out := w.Append(nil, Dialect{}.Drip(nil, false))
		out = w.Append(out, Dialect{}.Drip(nil, true))
		out = w.Close(w.Append(out, Dialect{}.Undrip(nil, data(`{"a":1}`), nil)))
		if string(out) != "[\n\n{\"a\":1}\n]\n" {
			t.Errorf("got %q", out)
		}
	})
}
