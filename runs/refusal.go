package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/unbroken-llm/unbroken/ledger"
)

// Refusal is the ledger's no: the run is as it was. Codes are
//
//	invalid         400  the request makes no sense by itself
//	unauthorized    401  whose run it is cannot be told
//	unknown_run     404
//	unknown_call    404
//	ended           409  the run has ended; nothing changes it any more
//	fenced          409  another process has claimed the run, or none has
//	version         409  the run has moved on
//	illegal         409  no such edge from where the run, or the call, is
//	conflict        409  the same was told before, with other content
//	ticket          409  unknown, expired, redeemed, void, or of another kind
//	too_late        409  it had to be told before the first batch
//	too_large       413
type Refusal struct {
	Code    string
	Message string
	// Legal lists the acts that would be taken now.
	Legal []string
	// Status is the HTTP status.
	Status int
}

func (r *Refusal) Error() string {
	if len(r.Legal) == 0 {
		return "runs: " + r.Code + ": " + r.Message
	}
	return "runs: " + r.Code + ": " + r.Message + " (legal: " + strings.Join(r.Legal, ", ") + ")"
}

// ErrUnavailable: the ledger did not answer, or could not promise that what was told
// will last. It may have taken effect; repeat it, or begin nothing.
var ErrUnavailable = errors.New("runs: ledger unavailable")

var errWho = errors.New("runs: whose run")

// codes of the ledger's errors, and their status.
var codes = []struct {
	err    error
	code   string
	status int
}{
	{errWho, "unauthorized", http.StatusUnauthorized},
	{ledger.ErrInvalid, "invalid", http.StatusBadRequest},
	{ledger.ErrUnknownRun, "unknown_run", http.StatusNotFound},
	{ledger.ErrNotFound, "unknown_run", http.StatusNotFound},
	{ledger.ErrUnknownCall, "unknown_call", http.StatusNotFound},
	{ledger.ErrEnded, "ended", http.StatusConflict},
	{ledger.ErrFenced, "fenced", http.StatusConflict},
	{ledger.ErrVersion, "version", http.StatusConflict},
	{ledger.ErrIllegal, "illegal", http.StatusConflict},
	{ledger.ErrConflict, "conflict", http.StatusConflict},
	{ledger.ErrTicket, "ticket", http.StatusConflict},
	{ledger.ErrTooLate, "too_late", http.StatusConflict},
	{ledger.ErrTooLarge, "too_large", http.StatusRequestEntityTooLarge},
	{ledger.ErrCorrupt, "corrupt", http.StatusInternalServerError},
	{ledger.ErrNewer, "newer", http.StatusInternalServerError},
	{ledger.ErrUnconfirmed, "unconfirmed", http.StatusServiceUnavailable},
	{ledger.ErrChanged, "busy", http.StatusServiceUnavailable},
	{ledger.ErrUnavailable, "unavailable", http.StatusServiceUnavailable},
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	f, status := failed{}, http.StatusInternalServerError
	f.Error.Code, f.Error.Message = "internal", err.Error()
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		err = fmt.Errorf("%w: a body of more than %d bytes", ledger.ErrTooLarge, large.Limit)
		f.Error.Message = err.Error()
	}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			f.Error.Code, status = c.code, c.status
			break
		}
	}
	var r *ledger.Refusal
	if errors.As(err, &r) {
		f.Error.Message, f.Error.Legal = r.Detail, r.Legal
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	answer(w, status, f)
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the reader left
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
