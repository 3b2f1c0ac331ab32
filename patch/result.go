package patch

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// State is how a patch stands, in order of severity: a greater State is worse.
type State int

const (
	// InForce means that the patch is needed, on the object, and that the operand follows it.
	InForce State = iota
	// NotNeeded means that this topology needs no patch and that nothing of ours is on the object.
	NotNeeded
	// OptedOut means that a person keeps the module away from the object.
	OptedOut
	// WouldChange means that a dry run found something to write.
	WouldChange
	// Progressing means that the patch is on the object and the operand is on its way.
	Progressing
	// Waiting means that something the decision needs is not there yet. A watch, not a timer, ends it.
	Waiting
	// Blocked means that somebody else owns a field that the patch needs. It is theirs; nothing is broken.
	Blocked
	// Reverted means that somebody took the patch off the object after it was applied.
	Reverted
	// Failed means that the API server refused, or that the input cannot be understood.
	Failed
)

// States lists every state in order of severity.
func States() []State {
	return []State{InForce, NotNeeded, OptedOut, WouldChange, Progressing, Waiting, Blocked, Reverted, Failed}
}

// String is the constant's own name.
func (s State) String() string {
	switch s {
	case InForce:
		return "InForce"
	case NotNeeded:
		return "NotNeeded"
	case OptedOut:
		return "OptedOut"
	case WouldChange:
		return "WouldChange"
	case Progressing:
		return "Progressing"
	case Waiting:
		return "Waiting"
	case Blocked:
		return "Blocked"
	case Reverted:
		return "Reverted"
	case Failed:
		return "Failed"
	}
	return fmt.Sprintf("State(%d)", int(s))
}

// Reasons that every module shares. A module documents its own beside these, in order of severity.
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
	ReasonInvalid                  = "Invalid"
	ReasonApplyFailed              = "ApplyFailed"
)

// Result is the outcome of looking at one patched object once. The zero value is InForce.
type Result struct {
	// State orders results; see Worst.
	State State
	// Reason is a CamelCase constant, stable over releases.
	Reason string
	// Message says in words what is the case and what to do about it. It lands in a condition, so it holds no object
	// names and no times, and the same situation gives the same text. It starts with a capital letter.
	Message string
	// After is when to look again although nothing changed; 0 means that a watch will tell.
	After time.Duration
	// Err is set for failures that are worth an immediate retry with back-off.
	Err error
}

// Worst returns the most severe of the results; the first of equals. Without results it is InForce.
func Worst(results ...Result) Result {
	var worst Result
	for i, result := range results {
		if i == 0 || result.State > worst.State {
			worst = result
		}
	}
	return worst
}

// Requeue is what the controller's queue is told: an error asks for a retry with back-off, a duration for another look at
// that time, neither for nothing until the next event.
func (r Result) Requeue() (time.Duration, error) {
	if r.Err != nil {
		return 0, r.Err
	}
	return r.After, nil
}

// OK reports whether nothing is left to do for sno or for a person.
func (r Result) OK() bool {
	switch r.State {
	case InForce, NotNeeded, OptedOut:
		return true
	case WouldChange, Progressing, Waiting, Blocked, Reverted, Failed:
		return false
	}
	return false
}

func (r Result) String() string {
	if r.Reason == "" {
		return r.State.String()
	}
	return fmt.Sprintf("%s (%s): %s", r.State, r.Reason, r.Message)
}

// OwnedByOther is the result for a field that other managers own with another value.
func OwnedByOther(field string, managers ...string) Result {
	quoted := make([]string, 0, len(managers))
	for _, manager := range managers {
		quoted = append(quoted, strconv.Quote(manager))
	}
	return Result{State: Blocked, Reason: ReasonFieldOwnedByOther, Message: fmt.Sprintf(
		"%s is owned by %s and stays as it is; to have it follow the topology, remove the field there or start with --force-conflicts",
		field, strings.Join(quoted, ", "))}
}
