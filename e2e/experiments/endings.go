package experiments

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// errRecord says that a pod's record cannot be read.
var errRecord = errors.New("not the record of a pod that was told to end")

// ending is how a pod ended, by its own record.
type ending struct {
	// term is when it was told to end, last when it wrote something down for the last time.
	term, last time.Time
	// hook is when its hook was called, end when it was done; zero when that never came to pass.
	hook, end time.Time
}

// readEnding reads a record: lines of a time in seconds and a word.
func readEnding(text string) (ending, error) {
	var e ending
	for line := range strings.Lines(text) {
		stamp, word, found := strings.Cut(strings.TrimSpace(line), " ")
		seconds, err := strconv.ParseFloat(stamp, 64)
		if !found || err != nil {
			// A line that was being written when the node went down is the last thing there is.
			break
		}
		at := time.UnixMicro(int64(seconds * 1e6))
		switch word {
		case "HOOK":
			e.hook = at
		case "TERM":
			e.term = at
		case "END":
			e.end = at
		}
		e.last = at
	}
	if e.term.IsZero() {
		return e, fmt.Errorf("%w: %q", errRecord, text)
	}
	return e, nil
}

func (e ending) String() string {
	hook := "hook called"
	if e.hook.IsZero() {
		hook = "no hook"
	}
	if e.end.IsZero() {
		return hook + ", killed after " + seconds(e.last.Sub(e.term))
	}
	return hook + ", done after " + seconds(e.end.Sub(e.term))
}

// ends are the records of an ordinary pod and of a critical one.
type ends struct{ ordinary, critical ending }

func (e ends) String() string {
	order := "with it"
	if e.inTurn() {
		order = "after it"
	}
	return e.ordinary.String() + ", critical pods told to end " + order
}

// slack is what clocks of processes and records differ by.
const slack = 500 * time.Millisecond

// inTurn tells whether the critical pod was told to end when the ordinary one was done.
func (e ends) inTurn() bool {
	return !e.ordinary.end.IsZero() && e.critical.term.After(e.ordinary.end.Add(-slack))
}

// inOrder holds that hooks were called, that both pods were done, and that the critical one came last.
func (e ends) inOrder() error {
	for _, pod := range []ending{e.ordinary, e.critical} {
		if pod.hook.IsZero() || pod.hook.After(pod.term) || pod.end.IsZero() {
			return fmt.Errorf("%w: %s", errGrace, pod)
		}
	}
	if !e.inTurn() {
		return fmt.Errorf("%w: %s", errGrace, e)
	}
	return nil
}

// needless holds that the pods did not get what they get with the configuration.
func (e ends) needless() error {
	if e.inOrder() == nil {
		return errNeedless
	}
	return nil
}
