// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The default and the minimum of the time limit of a shutdown.
const (
	DefaultShutdownBound = 3 * time.Minute
	MinShutdownBound     = 10 * time.Second
)

const (
	shutdownStep     = 30 * time.Second // for rounding up, because every change restarts the node
	criticalPriority = 2_000_000_000    // of system-cluster-critical; for the kubelet such pods are critical
)

// GracePeriods are the kubelet's shutdownGracePeriod and shutdownGracePeriodCriticalPods: critical pods have Critical
// to end, after the others had the rest of Total. Zero means no graceful shutdown.
type GracePeriods struct{ Total, Critical time.Duration }

func (g GracePeriods) nonCritical() time.Duration { return g.Total - g.Critical }

// ShutdownGracePeriods returns a node's grace periods (R-MCO-3): for its critical pods and for others the longest
// terminationGracePeriodSeconds, rounded up to half minutes and at least one. If they exceed bound, each kind gets at
// least the smaller of its need and half of bound. A bound below MinShutdownBound means no graceful shutdown.
func ShutdownGracePeriods(pods []corev1.Pod, bound time.Duration) GracePeriods {
	var nonCritical, critical time.Duration
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		grace := time.Duration(corev1.DefaultTerminationGracePeriodSeconds) * time.Second
		if seconds := pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
			// A Duration would overflow.
			grace = time.Duration(min(*seconds, int64(24*time.Hour/time.Second))) * time.Second
		}
		if pod.Spec.Priority != nil && *pod.Spec.Priority >= criticalPriority {
			critical = max(critical, grace)
		} else {
			nonCritical = max(nonCritical, grace)
		}
	}
	return share(roundUp(nonCritical), roundUp(critical), bound)
}

func roundUp(grace time.Duration) time.Duration {
	return max(shutdownStep, (grace+shutdownStep-1)/shutdownStep*shutdownStep)
}

func share(nonCritical, critical, bound time.Duration) GracePeriods {
	if bound < MinShutdownBound {
		return GracePeriods{}
	}
	half := (bound / 2).Truncate(time.Second)
	switch {
	case nonCritical+critical <= bound:
	case critical <= half:
		nonCritical = bound - critical
	case nonCritical <= half:
		critical = bound - nonCritical
	default:
		nonCritical, critical = bound-half, half
	}
	return GracePeriods{Total: nonCritical + critical, Critical: critical}
}

// Next returns the grace periods for a node that has live now. Only a lower bound makes them shorter.
func (g GracePeriods) Next(live GracePeriods, bound time.Duration) GracePeriods {
	if live.Total == 0 {
		return g
	}
	if live.Total <= bound && g.nonCritical() <= live.nonCritical() && g.Critical <= live.Critical {
		return live
	}
	return share(max(g.nonCritical(), live.nonCritical()), max(g.Critical, live.Critical), bound)
}

// ShutdownNodes returns the names of the nodes whose pods determine the grace periods: control-plane nodes, or the only
// node.
func ShutdownNodes(nodes []corev1.Node) []string {
	var names []string
	for i := range nodes {
		if isControlPlane(&nodes[i]) || len(nodes) == 1 {
			names = append(names, nodes[i].Name)
		}
	}
	return names
}
