package bedrock

import (
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/eventstream"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/turn"
)

func TestExceptionsAreFaults(t *testing.T) {
	exception := func(name, payload string) []byte {
		return eventstream.Append(nil, eventstream.Exception, name, []byte(payload))
	}
	for _, c := range []struct {
		name  string
		frame []byte
		want  turn.WireFault
		kind  interrupt.Kind
	}{
		{"throttled", exception("throttlingException", `{"message":"slow"}`), turn.WireFault{Type: "throttlingException", Message: "slow", Status: 429}, interrupt.Provider5xxMidStream},
		{"the model's own status", exception("modelStreamErrorException", `{"message":"m","originalStatusCode":503,"originalMessage":"o"}`), turn.WireFault{Type: "modelStreamErrorException", Message: "m", Status: 503}, interrupt.Provider5xxMidStream},
		{"no message but the model's", exception("modelStreamErrorException", `{"originalMessage":"o"}`), turn.WireFault{Type: "modelStreamErrorException", Message: "o", Status: 424}, interrupt.Provider5xxMidStream},
		{"timed out", exception("modelTimeoutException", `{}`), turn.WireFault{Type: "modelTimeoutException", Status: 408}, interrupt.Provider5xxMidStream},
		{"internal", exception("internalServerException", `{}`), turn.WireFault{Type: "internalServerException", Status: 500}, interrupt.Provider5xxMidStream},
		{"unavailable", exception("serviceUnavailableException", `{}`), turn.WireFault{Type: "serviceUnavailableException", Status: 503}, interrupt.Provider5xxMidStream},
		{"the request is at fault", exception("validationException", `{"message":"bad"}`), turn.WireFault{Type: "validationException", Message: "bad", Status: 400}, interrupt.Permanent},
		{"an exception of a later year", exception("newException", `{"message":"?"}`), turn.WireFault{Type: "newException", Message: "?"}, interrupt.Provider5xxMidStream},
		{"not modelled at all", unmodelled("InternalFailure", "it broke"), turn.WireFault{Type: "InternalFailure", Message: "it broke"}, interrupt.Provider5xxMidStream},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, d := range []dialect.Dialect{Converse{}, Invoke{}} {
				us := dialecttest.UnitsOf(d, c.frame)
				ds, err := d.NewDecoder(nil).Decode(nil, us[0])
				if err != nil || len(ds) != 1 || ds[0].Kind != turn.Fault || *ds[0].Fault != c.want {
					t.Fatalf("%s: %v, %v", d.Name(), ds, err)
				}
				if got := interrupt.FromFault(*ds[0].Fault).Kind; got != c.kind {
					t.Errorf("%s: %v, want %v", d.Name(), got, c.kind)
				}
			}
		})
	}
}

// unmodelled is a frame of message type "error", whose words are headers.
func unmodelled(code, message string) []byte {
	var headers []byte
	for _, h := range [][2]string{{":message-type", "error"}, {":error-code", code}, {":error-message", message}} {
		headers = append(append(headers, byte(len(h[0]))), h[0]...)
		headers = append(headers, 7, 0, byte(len(h[1])))
		headers = append(headers, h[1]...)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(16+len(headers)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	b = append(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)), headers...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

func TestFailuresAreExceptions(t *testing.T) {
	for _, c := range []struct {
		f             dialect.Failure
		name, payload string
		status        int
		body          string
	}{
		{dialect.Failure{Cause: "TruncatedEOF", Reason: "budget_spent"}, "modelStreamErrorException",
			`{"message":"the provider's stream was interrupted (cause: TruncatedEOF, not recovered: budget_spent)"}`, 502, `"__type":"ModelStreamErrorException"`},
		{dialect.Failure{Status: 429, Message: "slow"}, "throttlingException", `{"message":"slow"}`, 429, `"__type":"ThrottlingException"`},
		{dialect.Failure{Status: 500}, "internalServerException", "interrupted", 500, `"__type":"InternalServerException"`},
		{dialect.Failure{Status: 529}, "serviceUnavailableException", "interrupted", 529, `"__type":"ServiceUnavailableException"`},
		{dialect.Failure{Status: 413}, "validationException", "interrupted", 413, `"__type":"ValidationException"`},
		{dialect.Failure{Type: "validationException", Raw: []byte(`{"message":"bad","more":1}`)}, "validationException", `{"message":"bad","more":1}`, 400, `"more":1`},
	} {
		f, _, err := eventstream.Read(Converse{}.Fail(nil, nil, c.f), 0)
		if err != nil || f.IsEvent() || string(f.Name) != c.name || !strings.Contains(string(f.Payload), c.payload) {
			t.Errorf("%+v is %s %s, %v", c.f, f.Name, f.Payload, err)
		}
		if status, body := (Invoke{}).ErrorBody(c.f); status != c.status || !strings.Contains(string(body), c.body) {
			t.Errorf("%+v is %d %s", c.f, status, body)
		}
	}
}
