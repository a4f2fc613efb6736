package jsonfold_test

import (
	"testing"

	"github.com/unbroken-llm/unbroken/internal/jsonfold"
)

func TestPiecesBecomeOneDocument(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*jsonfold.Value)
		want string
	}{
		{"nothing", func(*jsonfold.Value) {}, `null`},
		{"a character in two halves", func(v *jsonfold.Value) { v.Text([]byte(`\ud83d`)); v.Text([]byte(`\ude00!`)) }, `"\ud83d\ude00!"`},
		{"what is first named stands first", func(v *jsonfold.Value) {
			v.At("b").Set([]byte("1"))
			v.At("a").Set([]byte("2"))
			v.At("b").Set([]byte("3"))
		}, `{"b":3,"a":2}`},
		{"what was never said is not written", func(v *jsonfold.Value) { v.At("a"); v.At("b").Set([]byte("null")) }, `{"b":null}`},
		{"null takes nothing back", func(v *jsonfold.Value) {
			v.At("a").Renew([]byte(`"x"`))
			v.At("a").Renew([]byte("null"))
			v.At("b").Renew([]byte("null"))
		}, `{"a":"x","b":null}`},
		{"an offer is for who has nothing", func(v *jsonfold.Value) {
			v.At("id").Offer([]byte(`""`))
			v.At("id").Offer([]byte(`"a"`))
			v.At("id").Offer([]byte(`"b"`))
		}, `{"id":"a"}`},
		{"strings and lists grow, counters do not", func(v *jsonfold.Value) {
			v.Merge([]byte(`{"t":"a","l":[1],"n":1,"type":"x","o":{"u":"b"}}`))
			v.Merge([]byte(`{"t":"c","l":[2,3],"n":2,"type":"x","o":{"u":"d","w":null}}`))
		}, `{"t":"ac","l":[1,2,3],"n":2,"type":"x","o":{"u":"bd","w":null}}`},
		{"elements with an index are pieces", func(v *jsonfold.Value) {
			v.Merge([]byte(`[{"index":0,"s":"a"},{"index":1,"s":"b"}]`))
			v.Merge([]byte(`[{"index":1,"s":"c"},{"s":"d"},{"index":0,"type":"other"}]`))
		}, `[{"index":0,"s":"a"},{"index":1,"s":"bc"},{"s":"d"},{"index":0,"type":"other"}]`},
		{"a record in parts", func(v *jsonfold.Value) {
			v.Update([]byte(`{"in":5,"out":1,"tier":"x"}`))
			v.Update([]byte(`{"out":9,"tier":null}`))
		}, `{"in":5,"out":9,"tier":"x"}`},
		{"what came whole can be added to", func(v *jsonfold.Value) {
			v.Set([]byte(`{"k\u00e9y": [1], "o": {"a": 1}}`))
			v.At("kéy").Push().Set([]byte("2"))
			v.At("o").At("b").Set([]byte("true"))
		}, `{"k\u00e9y":[1,2],"o":{"a":1,"b":true}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := jsonfold.New()
			c.do(v)
			if got := string(v.Append(nil)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// The size is what bounds memory: it follows what is held, not what was fed.
func TestSizeIsWhatIsHeld(t *testing.T) {
	v := jsonfold.New()
	for range 1000 {
		v.At("state").Renew([]byte(`[1,2,3,4]`))
	}
	if v.Size() != len("state")+len("[1,2,3,4]") {
		t.Errorf("%d bytes", v.Size())
	}
	v.At("state").Push().Text([]byte("abc"))
	if v.Size() != len("state")+len("1234")+len("abc") {
		t.Errorf("%d bytes", v.Size())
	}
}

// Nothing is shared with what was fed.
func TestInputMayBeReused(t *testing.T) {
	in := []byte(`{"a":"b","c":[{"index":0}]}`)
	v := jsonfold.New()
	v.Merge(in)
	clear(in)
	if got := string(v.Append(nil)); got != `{"a":"b","c":[{"index":0}]}` {
		t.Error(got)
	}
}
