package machineconfig

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// DefaultShutdownBound is the longest that a shutdown may take unless somebody says otherwise. A router asks for an hour, which
	// nobody waits for in front of a machine that is to restart.
	DefaultShutdownBound = 3 * time.Minute
	// MinShutdownBound is the least that makes sense: a pod that hears of its end needs a moment.
	MinShutdownBound = 10 * time.Second

	// shutdownStep is what grace periods are rounded up to, so that a small change of a pod is none of the node's.
	shutdownStep = 30 * time.Second
	// criticalPriority is that of system-cluster-critical, from which on the kubelet counts a pod as critical.
	criticalPriority = 2_000_000_000
)

// GracePeriods are two fields of the kubelet's configuration. First all pods that are not critical are ended, for Total less Critical at
// most, then the critical ones, for Critical at most. Both zero is no graceful shutdown.
type GracePeriods struct {
	// Total is shutdownGracePeriod: how long the node waits in all before it goes down.
	Total time.Duration
	// Critical is shutdownGracePeriodCriticalPods: the last part of Total, which is for critical pods alone.
	Critical time.Duration
}

// ordinary is the part that is for pods which are not critical.
func (g GracePeriods) ordinary() time.Duration { return g.Total - g.Critical }

// ShutdownGracePeriods is how long a node should wait for the pods that run on it (R-MCO-3): for each of the two kinds
// of pods as long as the longest terminationGracePeriodSeconds among them, since pods of one kind end side by side;
// rounded up to half minutes, and half a minute where there are none, for those that may come. All pods count that the
// kubelet would end, those of daemon sets and static ones too.
//
// bound limits the total. Where it does not suffice, neither kind gets less than half of it unless it asks for less. Less than
// MinShutdownBound is no graceful shutdown.
func ShutdownGracePeriods(pods []corev1.Pod, bound time.Duration) GracePeriods {
	var ordinary, critical time.Duration
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		grace := time.Duration(corev1.DefaultTerminationGracePeriodSeconds) * time.Second
		if seconds := pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
			// A pod may ask for centuries, which no Duration holds.
			grace = time.Duration(min(*seconds, int64(24*time.Hour/time.Second))) * time.Second
		}
		if pod.Spec.Priority != nil && *pod.Spec.Priority >= criticalPriority {
			critical = max(critical, grace)
		} else {
			ordinary = max(ordinary, grace)
		}
	}
	return share(roundUp(ordinary), roundUp(critical), bound)
}

func roundUp(grace time.Duration) time.Duration {
	return max(shutdownStep, (grace+shutdownStep-1)/shutdownStep*shutdownStep)
}

// share fits what the two kinds ask for into the bound.
func share(ordinary, critical, bound time.Duration) GracePeriods {
	if bound < MinShutdownBound {
		return GracePeriods{}
	}
	half := (bound / 2).Truncate(time.Second)
	switch {
	case ordinary+critical <= bound:
	case critical <= half:
		ordinary = bound - critical
	case ordinary <= half:
		critical = bound - ordinary
	default:
		ordinary, critical = bound-half, half
	}
	return GracePeriods{Total: ordinary + critical, Critical: critical}
}

// next is what the node should have when it has live now. A changed grace period restarts the node, so it never becomes shorter by
// itself, and never longer for what is less than a step. Only a lower bound takes something back: that is a person's word.
func (g GracePeriods) next(live GracePeriods, bound time.Duration) GracePeriods {
	if live.Total == 0 {
		return g
	}
	if live.Total <= bound && g.ordinary() <= live.ordinary() && g.Critical <= live.Critical {
		return live
	}
	return share(max(g.ordinary(), live.ordinary()), max(g.Critical, live.Critical), bound)
}

// kubeletFields are those fields of the kubelet's configuration that this module is about.
type kubeletFields struct {
	ShutdownGracePeriod             metav1.Duration `json:"shutdownGracePeriod"`
	ShutdownGracePeriodCriticalPods metav1.Duration `json:"shutdownGracePeriodCriticalPods"`
}

// kubeletConfiguration is the part of a kubelet's configuration that says so, as JSON.
func (g GracePeriods) kubeletConfiguration() ([]byte, error) {
	return json.Marshal(kubeletFields{ //nolint:wrapcheck // the caller knows what it was for
		ShutdownGracePeriod: metav1.Duration{Duration: g.Total}, ShutdownGracePeriodCriticalPods: metav1.Duration{Duration: g.Critical},
	})
}

// readGracePeriods reads them from a kubelet's configuration; zero where it does not have them.
func readGracePeriods(raw []byte) (GracePeriods, error) {
	var fields kubeletFields
	if len(raw) == 0 {
		return GracePeriods{}, nil
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return GracePeriods{}, fmt.Errorf("reading a kubelet's configuration: %w", err)
	}
	return GracePeriods{Total: fields.ShutdownGracePeriod.Duration, Critical: fields.ShutdownGracePeriodCriticalPods.Duration}, nil
}
