package ledger

import "slices"

// further stands for inferences that there was no room to tell apart. No lineage is
// empty, so that only a step takes it away.
const further = ""

// infer: a turn that is recorded already is not asked for as far as the run is
// concerned; what the wire answers instead is another branch, or the same turn.
func (w *writing) infer(a Infer) (Effect, error) {
	last := w.Last()
	switch {
	case a.Lineage == "" || !short(a.Lineage):
		return 0, refuse(ErrInvalid, w.Run, nil, "a lineage of %d bytes, 1 to %d", len(a.Lineage), MaxName)
	case w.State == Ended:
		return 0, refuse(ErrEnded, w.Run, nil, "%s", w.Cause)
	case slices.Contains(w.Pending, a.Lineage), last != nil && last.Lineage == a.Lineage, slices.Contains(w.Pending, further),
		a.Again && slices.ContainsFunc(w.Steps, func(s Step) bool { return s.Lineage == a.Lineage }):
		return Replayed, nil
	case len(w.Pending) == MaxPending-1:
		a.Lineage = further
	}
	w.Pending = append(w.Pending, a.Lineage)
	return New, nil
}

func (w *writing) lapse(a Lapse) (Effect, error) {
	i := slices.Index(w.Pending, a.Lineage)
	if i < 0 || a.Lineage == further {
		return Replayed, nil
	}
	w.Pending = slices.Delete(w.Pending, i, i+1)
	return New, nil
}
