package experiments

import "github.com/solonode/sno/e2e/kindtarget"

// All are the experiments, in the order in which they run where there is one cluster for all of them. Where there are two, those that take long because
// they wait are on the second. What measures fractions of a second comes when whatever is set up is likely to be there, and the restart of the node last:
// controllers that could not give up their leases get them back only when these have expired, after up to 270 seconds.
func All() []kindtarget.Experiment {
	return []kindtarget.Experiment{FloatingRouter, NewImages, Rollouts, APIOutage, EtcdGuard, Install, Join, Drain, Shutdown, NodeRestart}
}
