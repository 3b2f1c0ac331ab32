// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// ErrTimes is returned if a limit is 0 or negative, which would mean polling without a pause or not waiting at all.
var ErrTimes = errors.New("times of the run are not positive")

// Times are the limits of a run: the longest waits, and the periods without a change.
type Times struct {
	// Poll is the interval of reads while a run waits. Each read lists all pods.
	Poll time.Duration
	// Settle is how long the cluster may take to become stable before the first check and after a change.
	Settle time.Duration
	// Ready is how long pods of a copy may take to become ready, including the pull of the image.
	Ready time.Duration
	// Stuck is after how long without a change a rollout or an eviction counts as one that never ends.
	Stuck time.Duration
	// Quiet is how long no write may occur for a cluster to count as idle.
	Quiet time.Duration
	// Converge is how long operators may take to follow a change of the topology.
	Converge time.Duration
	// Outage is the length of the outage of the API server.
	Outage time.Duration
	// Restart is how long the restart of a node may take, until its pods have restarted.
	Restart time.Duration
	// Upgrade is how long an upgrade may take.
	Upgrade time.Duration
	// Cleanup is how long the removal of all objects may take.
	Cleanup time.Duration
}

// SimulatedTimes are for embedded clusters, whose nodes start pods at once. They allow for a busy machine.
func SimulatedTimes() Times {
	return Times{
		Poll:   250 * time.Millisecond, // about 100 objects
		Settle: 60 * time.Second,       // controllers start, elect a leader and patch: 5 s on an idle machine
		Ready:  30 * time.Second,       // no pull: 1 s
		Stuck:  4 * time.Second,        // the scheduler retries within a second of a change
		Quiet:  3 * time.Second,        // operators react within 0.5 s
		// Operators follow within 0.5 s, then rollouts take time; after an outage clients back off for half a minute or more.
		Converge: 45 * time.Second,
		Outage:   5 * time.Second,
		Restart:  30 * time.Second,
		Upgrade:  2 * time.Minute, // operators restart, one after the other
		Cleanup:  30 * time.Second,
	}
}

// RealTimes are for clusters with kubelets.
func RealTimes() Times {
	return Times{
		Poll:     2 * time.Second,  // about 20 requests, on a cluster that others use
		Settle:   10 * time.Minute, // the rollout of a router waits for its connections to drain
		Ready:    3 * time.Minute,  // one pull, slow at the edge
		Stuck:    60 * time.Second, // minReadySeconds of a router is 30 s, in which nothing changes
		Quiet:    60 * time.Second, // some operators resync every minute
		Converge: 3 * time.Minute,  // a resync of a minute, then a rollout
		Outage:   2 * time.Minute,  // R-OPS-4
		Restart:  15 * time.Minute, // firmware is slow
		Upgrade:  3 * time.Hour,    // one node reboots, and pulls every image of the release
		Cleanup:  2 * time.Minute,
	}
}

// Validate returns ErrTimes with the names of the fields that are not positive.
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

// Within polls until done returns true, and reports whether it did before the limit. The end of the limit is not an
// error.
func Within(ctx context.Context, every, limit time.Duration, done func(context.Context) (bool, error)) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	reached := false
	err := wait.PollUntilContextCancel(limited, every, true, func(ctx context.Context) (bool, error) {
		var err error
		reached, err = done(ctx)
		if ctx.Err() != nil {
			return false, nil
		}
		return reached, err
	})
	if err != nil && ctx.Err() == nil && wait.Interrupted(err) {
		err = nil
	}
	return reached, err
}

// EvictionRefusal returns why an eviction is refused, without names that change from run to run.
func EvictionRefusal(refused error) string {
	if apierrors.IsTooManyRequests(refused) {
		return "the eviction is refused: it would violate the pod's disruption budget"
	}
	return "the eviction fails: " + fmt.Sprint(refused)
}
