package machineconfig

import (
	"encoding/json"
	"fmt"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The longest that a shutdown may take, by default, and the least that may be set.
const (
	DefaultShutdownBound = 3 * time.Minute
	MinShutdownBound     = 10 * time.Second
)

const (
	shutdownStep     = 30 * time.Second // grace periods are rounded up, because every change restarts the node
	criticalPriority = 2_000_000_000    // that of system-cluster-critical; the kubelet takes such pods as critical
)

// GracePeriods are shutdownGracePeriod and shutdownGracePeriodCriticalPods of the kubelet: pods that are not critical get Total less Critical to
// end, then critical ones get Critical. Both zero means no graceful shutdown.
type GracePeriods struct{ Total, Critical time.Duration }

func (g GracePeriods) ordinary() time.Duration { return g.Total - g.Critical }

// ShutdownGracePeriods returns the grace periods for a node with these pods (R-MCO-3): for critical pods and for others the longest
// terminationGracePeriodSeconds, rounded up to half minutes and at least one.
//
// bound limits the total. Where it is too short, each kind gets at least the smaller of its need and half of the bound. A bound
// below MinShutdownBound means no graceful shutdown.
func ShutdownGracePeriods(pods []corev1.Pod, bound time.Duration) GracePeriods {
	var ordinary, critical time.Duration
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		grace := time.Duration(corev1.DefaultTerminationGracePeriodSeconds) * time.Second
		if seconds := pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
			// A Duration does not hold every int64 of seconds.
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

// share divides the bound.
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

// next returns the grace periods for a node that has live now. They never become shorter, except for a lower bound.
func (g GracePeriods) next(live GracePeriods, bound time.Duration) GracePeriods {
	if live.Total == 0 {
		return g
	}
	if live.Total <= bound && g.ordinary() <= live.ordinary() && g.Critical <= live.Critical {
		return live
	}
	return share(max(g.ordinary(), live.ordinary()), max(g.Critical, live.Critical), bound)
}

// readGracePeriods returns zero for no KubeletConfig, or one without grace periods.
func readGracePeriods(config *mcfgv1.KubeletConfig) (GracePeriods, error) {
	var fields struct {
		ShutdownGracePeriod, ShutdownGracePeriodCriticalPods metav1.Duration
	}
	if config == nil || config.Spec.KubeletConfig == nil || len(config.Spec.KubeletConfig.Raw) == 0 {
		return GracePeriods{}, nil
	}
	if err := json.Unmarshal(config.Spec.KubeletConfig.Raw, &fields); err != nil {
		return GracePeriods{}, fmt.Errorf("reading a kubelet's configuration: %w", err)
	}
	return GracePeriods{Total: fields.ShutdownGracePeriod.Duration, Critical: fields.ShutdownGracePeriodCriticalPods.Duration}, nil
}
