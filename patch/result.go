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

// State is the state of a patch, in order of severity: a greater State is worse.
type State int

const (
	// InForce means that the object has the patch and the operand follows it.
	InForce State = iota
	// NotNeeded means that this topology needs no patch and that the object has none.
	NotNeeded
	// OptedOut means that an annotation of the object opts out of the module.
	OptedOut
	// WouldChange means that a dry run found something to write.
	WouldChange
	// Progressing means that the object has the patch and the operand does not follow it yet.
	Progressing
	// Waiting means that an object that the decision needs does not exist yet.
	Waiting
	// Blocked means that another client owns a field that the patch needs.
	Blocked
	// Reverted means that another client removed the patch after it was applied.
	Reverted
	// Failed means that the API server refused a request or that the inputs are invalid.
	Failed
)

var stateNames = []string{"InForce", "NotNeeded", "OptedOut", "WouldChange", "Progressing", "Waiting", "Blocked", "Reverted", "Failed"}

// States lists every state in order of severity.
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

// Reasons that every module shares, in order of severity.
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

// Result is the outcome of reconciling one patched object. The zero value is InForce.
type Result struct {
	State State
	// Reason is a CamelCase constant, stable over releases.
	Reason string
	// Message is one sentence for a condition, without object names that vary and without times.
	Message string
	// After is when to reconcile again although nothing changed; 0 for never.
	After time.Duration
	// Err is set for failures to retry with back-off.
	Err error
}

// Worst returns the most severe of the results, the first of equals; InForce without results.
func Worst(results ...Result) Result {
	var worst Result
	for i, result := range results {
		if i == 0 || result.State > worst.State {
			worst = result
		}
	}
	return worst
}

// Combine returns the worst of the results that are not nil, with every error and the soonest After. InForce counts as worse than
// NotNeeded.
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

// OK reports whether neither sno nor a person has anything left to do.
func (r Result) OK() bool { return r.State <= OptedOut }

func (r Result) String() string {
	if r.Reason == "" {
		return r.State.String()
	}
	return fmt.Sprintf("%s (%s): %s", r.State, r.Reason, r.Message)
}

// OwnedByOther returns the result for a field that other managers own with another value.
func OwnedByOther(field string, managers ...string) Result {
	return Result{State: Blocked, Reason: ReasonFieldOwnedByOther, Message: fmt.Sprintf(
		"%s is owned by %s and stays as it is; to have it follow the topology, remove the field there or start with --force-conflicts",
		field, Quoted(managers))}
}

// Invalid returns the result for invalid inputs, such as unreadable managedFields.
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
