package patch

import corev1 "k8s.io/api/core/v1"

// Event is one events.k8s.io event about a patched object.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason is the result's reason.
	Reason string
	// Action is what was being done, a CamelCase verb.
	Action string
	// Note is the result's message.
	Note string
}

// Transition returns the event for going from one result to another, and false when nothing happened that anybody needs to
// hear: one event for a transition, none for confirming a state. previousReason is empty when nothing is known, as after the
// first start; then a quiet beginning (nothing needed, opted out) is no event.
func (r Result) Transition(previousReason string) (Event, bool) {
	if r.Reason == previousReason {
		return Event{}, false
	}
	if previousReason == "" && r.State != InForce && r.OK() {
		return Event{}, false
	}
	event := Event{Type: corev1.EventTypeNormal, Reason: r.Reason, Note: r.Message}
	switch r.State {
	case InForce, Progressing, WouldChange:
		event.Action = "Patch"
	case NotNeeded, OptedOut:
		event.Action = "Release"
	case Waiting:
		event.Action = "Wait"
	case Blocked, Reverted, Failed:
		event.Type, event.Action = corev1.EventTypeWarning, "Patch"
	}
	return event, true
}
