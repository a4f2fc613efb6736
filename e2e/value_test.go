package e2e

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/aws/smithy-go/document"
	"github.com/openai/openai-go/v3/packages/respjson"
)

// plainly turns what an SDK returned into maps, lists and scalars: all that an
// application can read of it, and which members were there. What only tells how the
// response was spelled and transported is left out.
func plainly(v reflect.Value) any {
	if !v.IsValid() {
		return nil
	}
	switch x := v.Interface().(type) {
	case respjson.Field:
		return x.Valid()
	case map[string]respjson.Field: // members that the SDK has no name for
		m := map[string]any{}
		for k, f := range x {
			m[k] = parsed([]byte(f.Raw()))
		}
		return m
	case json.RawMessage:
		return parsed(x)
	case document.Unmarshaler: // of AWS
		var val any
		if err := x.UnmarshalSmithyDocument(&val); err != nil {
			return err.Error()
		}
		return fmt.Sprint(val)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return plainly(v.Elem())
	case reflect.Struct:
		if v.CanAddr() {
			if f, ok := v.Addr().Interface().(fmt.Stringer); ok { // a time
				return f.String()
			}
		}
		return members(v)
	case reflect.Slice, reflect.Array:
		if b, ok := v.Interface().([]byte); ok {
			return string(b)
		}
		list := make([]any, v.Len())
		for i := range list {
			list[i] = plainly(v.Index(i))
		}
		return list
	case reflect.Map:
		m := map[string]any{}
		for it := v.MapRange(); it.Next(); {
			m[fmt.Sprint(it.Key())] = plainly(it.Value())
		}
		return m
	}
	return fmt.Sprint(v)
}

func members(v reflect.Value) map[string]any {
	m := map[string]any{"type": v.Type().Name()}
	for i := range v.NumField() {
		switch f := v.Type().Field(i); f.Name {
		case "ResultMetadata", "SDKHTTPResponse":
		default:
			if f.IsExported() {
				m[f.Name] = plainly(v.Field(i))
			}
		}
	}
	return m
}

// parsed is a JSON text as a value; what is none stays a text.
func parsed(raw []byte) any {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	return v
}

// Kinds of members that a comparison leaves out.
const (
	unshared = 1 << iota // no two answers share them: ids, and what is sealed or timed
	counted              // what a healed answer estimates
)

var apart = map[int][]string{
	unshared: {"ID", "id", "CallID", "call_id", "ToolUseId", "toolUseId", "ResponseID", "responseId", "Created", "CreatedAt", "CompletedAt", "EncryptedContent", "encrypted_content"},
	counted:  {"Usage", "usage", "UsageMetadata", "usageMetadata", "Metrics", "metrics"},
}

// without is a value without members of these kinds.
func without(v any, kinds int) any {
	switch v := v.(type) {
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = without(v[i], kinds)
		}
		return list
	case map[string]any:
		m := map[string]any{}
		for k, e := range v {
			m[k] = without(e, kinds)
			for kind, names := range apart {
				if kinds&kind != 0 && slices.Contains(names, k) {
					m[k] = e != nil
				}
			}
		}
		return m
	}
	return v
}

// differ tells the first place where two values differ, empty if there is none.
func differ(at string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		for _, k := range slices.Sorted(func(yield func(string) bool) {
			for k := range w {
				if !yield(k) {
					return
				}
			}
			for k := range g {
				if _, both := w[k]; !both && !yield(k) {
					return
				}
			}
		}) {
			if d := differ(at+"."+k, w[k], g[k]); d != "" {
				return d
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			break
		}
		for i := range w {
			if d := differ(fmt.Sprintf("%s[%d]", at, i), w[i], g[i]); d != "" {
				return d
			}
		}
		return ""
	}
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return fmt.Sprintf("%s is %v, want %v", at, got, want)
}
