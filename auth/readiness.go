// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"

	"github.com/solonode/sno/topology"
)

const (
	// RolloutGrace is how long the only API server may be unavailable during its rollout (R-OPS-4).
	RolloutGrace = 2 * time.Minute
	// DegradedAfter is the duration of a failure that is reported as Degraded (U-AUTH-6). A failure of all of several API
	// servers is reported at once, as upstream.
	DegradedAfter = 5 * time.Minute

	margin = time.Second // so that the next call is after the limit
)

// Reasons of the readiness of the well-known endpoint, least severe first.
const (
	ReasonAsExpected          = "AsExpected"                   // every API server serves the endpoint
	ReasonAPIServerRollingOut = "APIServerRollingOut"          // the only API server is unavailable, within RolloutGrace
	ReasonPartlyAvailable     = "AtLeastOneWellKnownAvailable" // some API servers do not serve the endpoint
	ReasonNoAPIServer         = "NoAPIServer"                  // no API server is known
	ReasonWellKnownNotReady   = "WellKnownNotReady"            // no API server serves the endpoint
)

// WellKnownState is the state between calls of WellKnownReadiness. The zero value means that the endpoint was never
// available. After a restart, fill it from the published conditions.
type WellKnownState struct {
	Available    bool      // the endpoint was available
	FailingSince time.Time // when an API server stopped serving the endpoint; zero while all serve it
	SilentSince  time.Time // when the last API server stopped serving the endpoint; zero while any serves it
}

// Readiness is the state of the well-known endpoint.
type Readiness struct {
	Available, Progressing, Degraded bool
	// Reason and Message of the conditions contain no endpoint and no time.
	Reason, Message string
	State           WellKnownState // for the next call
	After           time.Duration  // call again after this, because a limit passes; 0 for never
}

// WellKnownReadiness returns the state of /.well-known/oauth-authorization-server (R-AUTH-2), see the package's
// documentation. mode is the control-plane topology, probes has nil or an error for each known API server, before is
// the State of the last call. A time after now counts as now, so that a wrong clock delays a limit only once.
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
			Available: true, Degraded: failing > DegradedAfter, Reason: ReasonPartlyAvailable,
			Message: fmt.Sprintf("%d of %d API servers do not serve the well-known endpoint; look at those API servers", failed, len(probes)),
			State:   state, After: until(failing, DegradedAfter),
		}
	case topology.SingleReplica(mode) && silent <= RolloutGrace:
		// Also if no API server is known: the only one is not listed while it restarts.
		state.Available = before.Available
		return Readiness{
			Available: before.Available, Progressing: true, Reason: ReasonAPIServerRollingOut,
			Message: "The only API server does not answer; a rollout of it takes up to 2 minutes",
			State:   state, After: until(silent, RolloutGrace),
		}
	}
	readiness := Readiness{
		Degraded: true, Reason: ReasonWellKnownNotReady,
		Message: "No API server serves the well-known endpoint; look at the API servers and the OAuth metadata",
		State:   state,
	}
	if topology.SingleReplica(mode) { // where there are several, no rollout makes all of them silent
		readiness.Degraded, readiness.After = silent > DegradedAfter, until(silent, DegradedAfter)
	}
	if len(probes) == 0 {
		readiness.Reason, readiness.Message = ReasonNoAPIServer, "No API server is known; look at the endpoints of the kubernetes Service"
	}
	return readiness
}

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
	return limit - elapsed + margin
}

// Conditions returns the conditions <prefix>Available, <prefix>Progressing and <prefix>Degraded, without transition
// times.
func (r Readiness) Conditions(prefix string) []operatorv1.OperatorCondition {
	condition := func(suffix string, is bool, otherwise string) operatorv1.OperatorCondition {
		c := operatorv1.OperatorCondition{Type: prefix + suffix, Status: operatorv1.ConditionFalse, Reason: r.Reason, Message: r.Message}
		if is {
			c.Status = operatorv1.ConditionTrue
		} else if otherwise != "" {
			c.Reason, c.Message = ReasonAsExpected, otherwise
		}
		return c
	}
	return []operatorv1.OperatorCondition{
		condition("Available", r.Available, ""),
		condition("Progressing", r.Progressing, "Nothing is in progress"),
		condition("Degraded", r.Degraded, "Nothing is failing for long"),
	}
}
