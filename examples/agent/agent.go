package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/unbroken-llm/unbroken/runs"
)

var (
	errUnknown   = errors.New("a person must decide")
	errSucceeded = errors.New("another process has claimed the run")
)

// agent works on one run until it has ended. It holds no state that a crash could
// take: each round asks what may be done, and does that.
type agent struct {
	id, task string
	silent   bool
	out      io.Writer
	ledger   *runs.Client
	model    model
	tools    tools
	kept     store
	at       func(point string) // where it is; a test's concern

	claimed *runs.Claimed
	talk    conversation
}

func (a *agent) run(ctx context.Context) (err error) {
	defer func() {
		var no *runs.Refusal
		if errors.As(err, &no) && no.Code == "fenced" {
			err = fmt.Errorf("%w: %w", errSucceeded, err)
		}
	}()
	if a.talk, err = a.kept.load(); err != nil {
		return err
	}
	a.talk.Task = a.task
	a.at("before the claim")
	a.claimed, err = a.ledger.Claim(ctx, a.id, runs.Declaration{Reports: !a.silent, Policies: policies()})
	var no *runs.Refusal
	if errors.As(err, &no) && no.Code == "ended" {
		return a.end(ctx)
	}
	if err != nil {
		return err
	}
	a.at("after the claim")
	for {
		next, err := a.claimed.Recovery(ctx)
		if err != nil {
			return err
		}
		a.at("advised")
		switch next.Advice {
		case runs.RedeliverEnd:
			return a.end(ctx)
		case runs.StandDown:
			return errSucceeded
		case runs.NextStep:
			err = a.infer(ctx, next)
		case runs.SettleBatch:
			err = a.settle(ctx, next)
		default: // unknown, await_ticket
			err = fmt.Errorf("%w: %s: %s", errUnknown, next.Advice, next.Reason)
		}
		if err != nil {
			return err
		}
	}
}

// infer asks for the next turn, with the results of the last batch.
func (a *agent) infer(ctx context.Context, next *runs.Recovery) error {
	if t := a.last(); t != nil && t.Results == nil && len(next.Run.Steps) > 0 {
		for _, c := range next.Run.Steps[len(next.Run.Steps)-1].Calls {
			result := "It is not known whether this ran: " + c.Why
			if c.Result != nil {
				result = string(c.Result.Content)
			}
			t.Results = append(t.Results, result)
		}
		// The ledger keeps results until the next step is committed; from then on
		// they are here.
		if err := a.kept.save(a.talk); err != nil {
			return err
		}
	}
	a.at("before the inference")
	if err := a.ask(ctx); err != nil {
		return err
	}
	if !a.silent {
		return nil
	}
	// Nobody is told, so that only this process knows what it has done.
	t := a.last()
	for _, c := range t.Calls {
		result, err := a.tools.execute(c, a.id+"/"+c.ID, false)
		if err != nil {
			return err
		}
		t.Results = append(t.Results, result)
	}
	if len(t.Calls) == 0 {
		return nil
	}
	if err := a.kept.save(a.talk); err != nil {
		return err
	}
	return a.infer(ctx, next)
}

// ask has the model say its next turn. One that was said before, to a process that
// died before it had it on its disk, is said again by the sidecar: the request is the
// same.
func (a *agent) ask(ctx context.Context) error {
	t, err := a.model.ask(ctx, a.id, a.talk)
	if err != nil {
		return fmt.Errorf("ask the model: %w", err)
	}
	a.at("after the inference")
	a.talk.Turns = append(a.talk.Turns, t)
	if err := a.kept.save(a.talk); err != nil {
		return err
	}
	a.at("after the turn was saved")
	return nil
}

// settle does what the ledger says of each call of the open batch.
func (a *agent) settle(ctx context.Context, next *runs.Recovery) error {
	t := a.last()
	lost := t == nil || t.Results != nil // with a process
	if lost {
		if err := a.ask(ctx); err != nil {
			return err
		}
		t = a.last()
	}
	said := map[string]call{}
	for _, c := range t.Calls {
		said[c.ID] = c
	}
	for _, c := range next.Calls {
		asked, ok := said[c.ID]
		var err error
		switch {
		case c.Advice == runs.Keep:
		case !ok && lost:
			return nil // the model said another turn, whose batch took the place of this one
		case !ok:
			return fmt.Errorf("%w: step %d is not the turn that is kept here", errUnknown, next.Step)
		case c.Advice == runs.GiveUp:
			a.at("before " + c.Name + " is given up")
			err = a.claimed.Lose(ctx, c.Op, c.Reason)
			a.at("after " + c.Name + " was given up")
		case c.Advice == runs.Execute, c.Advice == runs.Replay, c.Advice == runs.Reconnect:
			err = a.execute(ctx, c, asked)
		default:
			err = fmt.Errorf("%w: %s: %s: %s", errUnknown, c.Name, c.Advice, c.Reason)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// execute announces an attempt, has the effect, and tells its result, in this order.
func (a *agent) execute(ctx context.Context, c runs.Call, asked call) error {
	a.at("before " + c.Name + " is announced")
	if err := a.claimed.Start(ctx, c.Op, c.Attempt); err != nil {
		return err // not acknowledged: not begun
	}
	a.at("after " + c.Name + " was announced")
	result, err := a.tools.execute(asked, c.Op, c.Advice == runs.Reconnect)
	if err != nil {
		result = err.Error()
	}
	a.at("before the result of " + c.Name)
	if err := a.claimed.Result(ctx, c.Op, c.Attempt, []byte(result), err != nil); err != nil {
		return err
	}
	a.at("after the result of " + c.Name)
	return nil
}

// end delivers the end of the run, once more if it was delivered before.
func (a *agent) end(ctx context.Context) error {
	end, err := a.ledger.Recovery(ctx, a.id)
	if err != nil {
		return err
	}
	if end.Run.Cause != "completed" {
		fmt.Fprintln(a.out, "The run has ended:", end.Run.Cause)
		return nil
	}
	if t := a.last(); t == nil || len(t.Calls) > 0 {
		if err := a.ask(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintln(a.out, a.last().Text)
	a.at("at the end")
	return nil
}

// last is the newest turn that this process has, nil before the first.
func (a *agent) last() *turn {
	if len(a.talk.Turns) == 0 {
		return nil
	}
	return &a.talk.Turns[len(a.talk.Turns)-1]
}
