// SPDX-License-Identifier: Apache-2.0

package experiments

import "github.com/solonode/sno/e2e/kindtarget"

// All returns the experiments in the order of a single cluster. With two clusters, those with long waits run on the
// second. Measurements of fractions of a second come when the cluster is likely to be idle, and the restart of the node
// comes last: controllers that could not release their Leases have to wait until these expire, for up to 270 seconds.
func All() []kindtarget.Experiment {
	return []kindtarget.Experiment{
		FloatingRouter, NewImages, Rollouts, SharedHostPorts, APIOutage, EtcdGuard, Install, Join, Drain, Shutdown, SameVerdicts, Recover, NodeRestart,
	}
}
