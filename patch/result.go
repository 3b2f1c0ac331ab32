// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// State is the state of a patch. A greater State is more severe.
type State int

// The states.
const (
	InForce     State = iota // the object has the patch and the operand follows it
	NotNeeded                // the topology needs no patch and the object has none
	OptedOut                 // an annotation of the object opts out of the module
	WouldChange              // a dry run found changes
	Progressing              // the object has the patch and the operand does not follow it yet
	Waiting                  // an object that the decision needs does not exist yet
	Blocked                  // another client owns a field that the patch needs
	Reverted                 // another client removed the patch after it was applied
	Failed                   // the API server rejected a request, or the inputs are invalid
)

var stateNames = []string{"InForce", "NotNeeded", "OptedOut", "WouldChange", "Progressing", "Waiting", "Blocked", "Reverted", "Failed"}

// States returns all states in order of severity.
func States() []State {
	var states []State
	for i := range stateNames {
		states = append(states, State(i))
	}
	return states
}

// String returns the name of the constant.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", int(s))
}

// Reasons of all modules, in order of severity.
const (
	ReasonAsExpected               = "AsExpected"
	ReasonNotNeeded                = "NotNeeded"
	ReasonOptedOut                 = "OptedOut"
	ReasonDryRun                   = "DryRun"
	ReasonRollingOut               = "RollingOut"
	ReasonWaitingForInfrastructure = "WaitingForInfrastructure"
	ReasonWaitingForObject         = "WaitingForObject"
	ReasonFieldOwnedByOther        = "FieldOwnedByOther"
	ReasonReverted                 = "Reverted"
	ReasonForbidden                = "Forbidden"
	ReasonRolloutStuck             = "RolloutStuck" // the progress deadline of a Deployment has passed
	ReasonInvalid                  = "Invalid"
	ReasonApplyFailed              = "ApplyFailed"
)

// Result is the outcome of reconciling one object. The zero value is InForce.
type Result struct {
	State  State
	Reason string // a CamelCase constant, stable across releases
	// Message is one sentence for a condition, without times and without names that vary.
	Message string
	After   time.Duration // when to reconcile again; 0 for never
	Err     error         // to retry with back-off
}

// Worst returns the first of the most severe results.
func Worst(results ...Result) Result {
	var worst Result
	for i, result := range results {
		if i == 0 || result.State > worst.State {
			worst = result
		}
	}
	return worst
}

// Combine returns the worst result with all errors and the soonest After; InForce is worse than NotNeeded.
func Combine(results ...*Result) Result {
	var all []Result
	var failures []error
	var after time.Duration
	for _, result := range results {
		if result == nil {
			continue
		}
		all = append(all, *result)
		failures = append(failures, result.Err)
		if result.After > 0 {
			after = min(cmp.Or(after, result.After), result.After)
		}
	}
	worst := Worst(all...)
	if i := slices.IndexFunc(all, func(r Result) bool { return r.State == InForce }); worst.State == NotNeeded && i >= 0 {
		worst = all[i]
	}
	worst.After, worst.Err = after, errors.Join(failures...)
	return worst
}

// OK reports whether there is nothing left to do, for the module or a person.
func (r Result) OK() bool { return r.State <= OptedOut }

func (r Result) String() string {
	if r.Reason == "" {
		return r.State.String()
	}
	return fmt.Sprintf("%s (%s): %s", r.State, r.Reason, r.Message)
}

// OwnedByOther returns the result for a field with another value of other managers.
func OwnedByOther(field string, managers ...string) Result {
	return Result{State: Blocked, Reason: ReasonFieldOwnedByOther, Message: fmt.Sprintf(
		"%s is owned by %s and stays as it is; to have it follow the topology, remove the field there or start with --force-conflicts",
		field, Quoted(managers))}
}

// Invalid returns the result for invalid inputs.
func Invalid(err error) *Result {
	return &Result{State: Failed, Reason: ReasonInvalid, Message: "The inputs cannot be understood: " + err.Error()}
}

// Quoted returns the distinct names, sorted and in quotation marks: "a", "b".
func Quoted(names []string) string {
	var out []string
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		out = append(out, strconv.Quote(name))
	}
	return strings.Join(out, ", ")
}
