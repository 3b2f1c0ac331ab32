// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

var errRecord = errors.New("not the record of a terminated pod")

// ending is a pod's own record of its termination.
type ending struct {
	// term is the time of SIGTERM, last that of the last entry.
	term, last time.Time
	// hook is when the hook was called, end when the pod had finished; zero for never.
	hook, end time.Time
}

// readEnding parses a record: lines of a time in seconds and a word.
func readEnding(text string) (ending, error) {
	var e ending
	for line := range strings.Lines(text) {
		stamp, word, found := strings.Cut(strings.TrimSpace(line), " ")
		seconds, err := strconv.ParseFloat(stamp, 64)
		if !found || err != nil {
			// The last line may be incomplete.
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

type ends struct{ ordinary, critical ending }

func (e ends) String() string {
	order := "with it"
	if e.inTurn() {
		order = "after it"
	}
	return e.ordinary.String() + ", critical pods terminated " + order
}

// slack is the tolerance for clocks of processes and records.
const slack = 500 * time.Millisecond

// inTurn reports whether the critical pod was terminated after the ordinary one had finished.
func (e ends) inTurn() bool {
	return !e.ordinary.end.IsZero() && e.critical.term.After(e.ordinary.end.Add(-slack))
}

// inOrder returns an error unless the hooks were called, both pods finished, and the critical one was terminated last.
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

// needless returns an error if the pods ended in order without the configuration.
func (e ends) needless() error {
	if e.inOrder() == nil {
		return errNeedless
	}
	return nil
}
