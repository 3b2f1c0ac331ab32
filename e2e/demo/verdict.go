// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"slices"

	"github.com/solonode/sno/testcluster/scenario"
)

// check compares the places of the routers with the scenario: their number, their pool, and that they are on different
// nodes.
func check(s scenario.Scenario, places []place) error {
	if len(places) != int(s.Replicas) {
		return fmt.Errorf("%w: %d router(s), wanted: %d", ErrVerificationFailed, len(places), s.Replicas)
	}
	taken := map[string]string{}
	for _, p := range places {
		if s.Pool == scenario.PoolMaster && p.Pool != string(scenario.PoolMaster) {
			return fmt.Errorf("%w: %s is on %s, which is not a control-plane node", ErrVerificationFailed, p.Pod, p.Node)
		}
		if other, ok := taken[p.Node]; ok {
			return fmt.Errorf("%w: %s and %s are both on %s", ErrVerificationFailed, other, p.Pod, p.Node)
		}
		taken[p.Node] = p.Pod
	}
	return nil
}

func offPool(places []place, pool scenario.Pool) bool {
	return slices.ContainsFunc(places, func(p place) bool { return p.Pool != string(pool) })
}
