// SPDX-License-Identifier: Apache-2.0

package overview

import "fmt"

// State is the state of a cluster. A greater State is more severe.
type State int

// The states.
const (
	Settled     State = iota // nothing is left to do: every patch is in force, or not needed, or opted out
	OptedOut                 // the cluster has the label, and nothing runs there
	DryRun                   // the configuration is a dry run
	Installing               // the turn of the cluster has not come, or it has reported nothing yet
	Progressing              // patches are in force and operands follow
	Removing                 // the add-on is being deleted; it ends when every field is released
	Away                     // the cluster does not report; what is shown was reported before
	NotInForce               // a patch is not in force, for the reason that is shown
	Refused                  // the configuration or the manifests were refused; nothing was changed
)

var names = []string{"Settled", "OptedOut", "DryRun", "Installing", "Progressing", "Removing", "Away", "NotInForce", "Refused"}

// String returns the name of the constant.
func (s State) String() string {
	if s >= 0 && int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("State(%d)", int(s))
}

// MarshalText implements encoding.TextMarshaler.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Exit codes of a table.
const (
	ExitSettled    = 0
	ExitWaiting    = 4 // some clusters change, or wait for their turn
	ExitAway       = 5 // some do not report, and none is known to be worse
	ExitNotInForce = 6
)

// ExitCode returns the exit code of a table whose worst state this is.
func (s State) ExitCode() int {
	switch {
	case s <= DryRun:
		return ExitSettled
	case s <= Removing:
		return ExitWaiting
	case s == Away:
		return ExitAway
	}
	return ExitNotInForce
}
