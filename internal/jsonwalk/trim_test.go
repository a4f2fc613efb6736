package jsonwalk

import "testing"

func TestLast(t *testing.T) {
	for arr, want := range map[string]string{
		`[1, {"a":2} ]`: `{"a":2}`, `[]`: "", `null`: "", `[1,2`: "", `[1,,2]`: "",
	} {
		if got := string(Last([]byte(arr))); got != want {
			t.Errorf("%s: %q, want %q", arr, got, want)
		}
	}
}

// Bodies are trimmed as text and kept as they were spelled.
func TestTrimmedBodies(t *testing.T) {
	for body, want := range map[string]struct {
		trimmed, paired string
		blank           bool
	}{
		``:              {``, ``, true},
		` \n\u0020`:     {``, ` \n\u0020`, true},
		`a\u00e9 \t`:    {`a\u00e9`, `a\u00e9 \t`, false},
		`a\\n`:          {`a\\n`, `a\\n`, false},
		`a\ud83d`:       {`a\ud83d`, `a`, false},
		`a\ud83d\ude00`: {`a\ud83d\ude00`, `a\ud83d\ude00`, false},
	} {
		if got := string(TrimRight([]byte(body))); got != want.trimmed {
			t.Errorf("%s: trimmed to %q", body, got)
		}
		if got := string(Paired([]byte(body))); got != want.paired {
			t.Errorf("%s: paired is %q", body, got)
		}
		if got := Blank([]byte(body)); got != want.blank {
			t.Errorf("%s: blank is %v", body, got)
		}
	}
}
