package checks

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

// ErrTimes says that a run was given a limit of nothing, with which it would ask without pause or not wait at all.
var ErrTimes = errors.New("times of the run are not set")

// Times are all limits of a run. Each is an upper bound on waiting for something that comes much sooner, or the time for which nothing may
// change; no check waits for a time to pass otherwise.
type Times struct {
	// Poll is how often a cluster is read again while something is waited for. A look reads all pods.
	Poll time.Duration
	// Settle is how long the cluster may take to come to rest before the first check, after an installation or a change.
	Settle time.Duration
	// Ready is how long pods of a copied Deployment may take to become ready: images are pulled in it.
	Ready time.Duration
	// Stuck is how long nothing at all may change about a rollout or an eviction that has not ended before it counts as one that never ends.
	Stuck time.Duration
	// Quiet is how long nobody may write for a cluster to count as being at rest.
	Quiet time.Duration
	// Converge is how long operators may take to follow a change of the topology.
	Converge time.Duration
	// Outage is how long the API server is away.
	Outage time.Duration
	// Restart is how long a node may take to come back.
	Restart time.Duration
	// Cleanup is how long taking everything away may take after an interruption.
	Cleanup time.Duration
}

// SimulatedTimes are for embedded clusters, whose nodes start pods at once. They are generous because many clusters share a machine.
func SimulatedTimes() Times {
	return Times{
		Poll:   250 * time.Millisecond, // a hundred objects
		Settle: 60 * time.Second,       // controllers start, elect a leader and patch: 5 s on an idle machine
		Ready:  30 * time.Second,       // nothing is pulled: a second
		Stuck:  4 * time.Second,        // the scheduler tries again within a second of every change
		Quiet:  3 * time.Second,        // operators answer an event within half a second
		// A flip is followed in half a second, but rollouts follow it; and after an outage clients back off for up to half a minute.
		Converge: 45 * time.Second,
		Outage:   5 * time.Second,
		Restart:  30 * time.Second,
		Cleanup:  30 * time.Second,
	}
}

// RealTimes are for clusters with kubelets.
func RealTimes() Times {
	return Times{
		Poll:     2 * time.Second,  // some twenty requests, on a cluster that others use
		Settle:   10 * time.Minute, // a rollout of a router waits for its connections to drain
		Ready:    3 * time.Minute,  // an image is pulled once, slowly at the edge
		Stuck:    60 * time.Second, // a router counts as available half a minute after it is ready, and nothing changes meanwhile
		Quiet:    60 * time.Second, // operators that resync do so each minute
		Converge: 3 * time.Minute,  // resyncs of a minute, then a rollout
		Outage:   2 * time.Minute,  // R-OPS-4
		Restart:  15 * time.Minute, // firmware takes its time
		Cleanup:  2 * time.Minute,
	}
}

// Validate returns ErrTimes with the names of the fields that are not longer than nothing.
func (t Times) Validate() error {
	var unset []string
	fields := reflect.ValueOf(t)
	for i := range fields.NumField() {
		if fields.Field(i).Int() <= 0 {
			unset = append(unset, fields.Type().Field(i).Name)
		}
	}
	if len(unset) > 0 {
		return fmt.Errorf("%w: %s; begin with RealTimes or SimulatedTimes", ErrTimes, strings.Join(unset, ", "))
	}
	return nil
}

// stuck is Stuck for what these Deployments do: a healthy rollout is silent for as long as a pod must be ready before it counts.
func (t Times) stuck(all []appsv1.Deployment) time.Duration {
	limit := t.Stuck
	for i := range all {
		limit = max(limit, 2*time.Duration(all[i].Spec.MinReadySeconds)*time.Second)
	}
	return limit
}
