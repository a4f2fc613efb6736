package jsonwalk

import "testing"

// Whatever is dropped, what is left is the array without it, by the byte.
func TestCut(t *testing.T) {
	const body = `{"a":[1, "two" ,{"c":3},[4]],"b":0}`
	b := []byte(body)
	items := All(Get(b, "a"))
	for _, c := range []struct {
		drop string // one mark per element: x is dropped
		want string
	}{
		{"----", body},
		{"x---", `{"a":["two" ,{"c":3},[4]],"b":0}`},
		{"-x--", `{"a":[1 ,{"c":3},[4]],"b":0}`},
		{"---x", `{"a":[1, "two" ,{"c":3}],"b":0}`},
		{"xx--", `{"a":[{"c":3},[4]],"b":0}`},
		{"-xx-", `{"a":[1,[4]],"b":0}`},
		{"x-x-", `{"a":["two",[4]],"b":0}`},
		{"xxxx", `{"a":[],"b":0}`},
	} {
		got := ApplySorted(b, Cut(nil, b, items, func(i int) bool { return c.drop[i] == 'x' }))
		if string(got) != c.want {
			t.Errorf("%s: got %s, want %s", c.drop, got, c.want)
		}
	}
	if All([]byte(`{}`)) != nil || len(All([]byte(`[]`))) != 0 {
		t.Error("elements of nothing")
	}
}
