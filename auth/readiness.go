package auth

import (
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"

	"github.com/solonode/sno/topology"
)

const (
	// RolloutGrace is how long the only API server may be away while it is rolled out (R-OPS-4).
	RolloutGrace = 2 * time.Minute
	// DegradedInertia is how long something may fail before it degrades, as upstream has it for the well-known endpoint
	// (U-AUTH-6).
	DegradedInertia = 5 * time.Minute

	// recheck is how long after a limit to look again, so that the look is after it.
	recheck = time.Second
)

// Reasons of the readiness of the well-known endpoint, least severe first.
const (
	ReasonAPIServerRollingOut = "APIServerRollingOut"          // the only API server is away, not yet for too long
	ReasonPartlyAvailable     = "AtLeastOneWellKnownAvailable" // some API servers do not serve the endpoint
	ReasonNoAPIServer         = "NoAPIServer"                  // no API server is known
	ReasonWellKnownNotReady   = "WellKnownNotReady"            // no API server serves the endpoint
)

// WellKnownState is what one look at the well-known endpoint leaves for the next. The zero value is that of a cluster whose
// endpoint was never seen. A process that starts afresh fills it from the published conditions: Available from the status of
// Available, the times, where something fails, from their last transitions; times that are left out are counted from the
// first look.
type WellKnownState struct {
	// Available is whether the endpoint was available at the last look.
	Available bool
	// FailingSince is when the first of the API servers that do not serve the endpoint stopped; zero while all serve it.
	FailingSince time.Time
	// SilentSince is when the last API server that served the endpoint stopped; zero while any serves it.
	SilentSince time.Time
}

// Readiness is how the well-known endpoint stands.
type Readiness struct {
	Available, Progressing, Degraded bool
	// Reason and Message belong to all that is not as it should be. They name no endpoint and no time.
	Reason, Message string
	// State is to be given to the next look.
	State WellKnownState
	// After is when to look again although nothing changed, because a limit passes then; 0 for no such time.
	After time.Duration
}

// WellKnownReadiness judges /.well-known/oauth-authorization-server. mode is the control-plane topology. probes has one entry
// for each API server that is known: nil if it served the endpoint, else why not. before is the State of the look before, now
// the time.
//
//	served by          mode           Available                     Progressing     Degraded
//	all                any            yes                           no              no
//	some               any            yes                           no              after DegradedInertia
//	none, up to grace  SingleReplica  yes, if it was before         yes             no
//	none, longer       SingleReplica  no                            no              after DegradedInertia
//	none               all others     no                            no              after DegradedInertia
//
// No API server at all is none: the only one takes itself off the list while it restarts. Grace is RolloutGrace, the limit
// included, and covers only what has worked: during installation an endpoint that never answered is not available. With
// several API servers a rollout is a partial failure, so grace would only hide an outage.
//
// Waiting out the restart of the only API server is R-AUTH-2.
//
// A clock that went back (now before the times of the state) starts both times anew at now, so that a wrong clock can put a
// limit off once, and not until it is right again.
func WellKnownReadiness(mode configv1.TopologyMode, probes []error, before WellKnownState, now time.Time) Readiness {
	failed := 0
	for _, err := range probes {
		if err != nil {
			failed++
		}
	}
	state := WellKnownState{FailingSince: since(before.FailingSince, now), SilentSince: since(before.SilentSince, now)}
	failing, silent := now.Sub(state.FailingSince), now.Sub(state.SilentSince)
	switch {
	case len(probes) > 0 && failed == 0:
		return Readiness{Available: true, Reason: ReasonAsExpected, Message: "Every API server serves the well-known endpoint",
			State: WellKnownState{Available: true}}
	case failed < len(probes):
		state.Available, state.SilentSince = true, time.Time{}
		return Readiness{
			Available: true, Degraded: failing > DegradedInertia, Reason: ReasonPartlyAvailable,
			Message: fmt.Sprintf("%d of %d API servers do not serve the well-known endpoint; look at those API servers", failed, len(probes)),
			State:   state, After: until(failing, DegradedInertia),
		}
	}

	if topology.SingleReplica(mode) && silent <= RolloutGrace {
		state.Available = before.Available
		return Readiness{
			Available: before.Available, Progressing: true, Reason: ReasonAPIServerRollingOut,
			Message: "The only API server does not answer; a rollout of it takes up to 2 minutes",
			State:   state, After: until(silent, RolloutGrace),
		}
	}
	readiness := Readiness{Degraded: silent > DegradedInertia, State: state, After: until(silent, DegradedInertia)}
	if len(probes) == 0 {
		readiness.Reason, readiness.Message = ReasonNoAPIServer, "No API server is known; look at the endpoints of the kubernetes Service"
	} else {
		readiness.Reason, readiness.Message = ReasonWellKnownNotReady, "No API server serves the well-known endpoint; look at the API servers and the OAuth metadata"
	}
	return readiness
}

// since is when something that fails now began to.
func since(known, now time.Time) time.Time {
	if known.IsZero() || now.Before(known) {
		return now
	}
	return known
}

func until(elapsed, limit time.Duration) time.Duration {
	if elapsed > limit {
		return 0
	}
	return limit - elapsed + recheck
}

// Conditions are the operator conditions <prefix>Available, <prefix>Progressing and <prefix>Degraded, without transition
// times, which belong to whoever writes them.
func (r Readiness) Conditions(prefix string) []operatorv1.OperatorCondition {
	condition := func(suffix string, is, good bool, otherwise string) operatorv1.OperatorCondition {
		c := operatorv1.OperatorCondition{Type: prefix + suffix, Status: operatorv1.ConditionFalse, Reason: r.Reason, Message: r.Message}
		if is {
			c.Status = operatorv1.ConditionTrue
		}
		if is == good && otherwise != "" {
			c.Reason, c.Message = ReasonAsExpected, otherwise
		}
		return c
	}
	return []operatorv1.OperatorCondition{
		condition("Available", r.Available, true, ""),
		condition("Progressing", r.Progressing, false, "Nothing is in progress"),
		condition("Degraded", r.Degraded, false, "Nothing is failing for long"),
	}
}
