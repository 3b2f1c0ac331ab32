package machineconfig

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	mcfgv1ac "github.com/openshift/client-go/machineconfiguration/applyconfigurations/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/solonode/sno/patch"
)

// ShutdownDebounce is for how long a Decision that Restarts must be stable before it is carried out.
const ShutdownDebounce = 10 * time.Minute

// Decision is what to do about the graceful shutdown: apply both objects, delete those that exist, or neither. Write both within a few seconds,
// since the operator renders a config soon after that, and every rendered config restarts the node.
type Decision struct {
	MachineConfig *mcfgv1ac.MachineConfigApplyConfiguration
	KubeletConfig *mcfgv1ac.KubeletConfigApplyConfiguration
	Delete        bool
	// Restarts reports whether the node restarts for it, at once or when its pool is no longer paused.
	Restarts bool
	// Result is nil when the objects are applied; then call Observe.
	Result *patch.Result
}

// Decide returns the decision about the graceful shutdown. The objects are created, and the grace periods grow, only while the pool is at rest or
// paused.
func Decide(in Inputs) Decision {
	result, ours := Checks().Run(in)
	if result == nil {
		return in.apply()
	}
	exist := ours == patch.ReleaseFields && len(in.shutdownObjects()) > 0
	return Decision{Delete: exist, Restarts: exist, Result: result}
}

func (in Inputs) apply() Decision {
	live, err := readGracePeriods(in.ourKubeletConfig())
	if err != nil {
		return Decision{Result: patch.Invalid(err)}
	}
	bound := cmp.Or(in.ShutdownBound, DefaultShutdownBound)
	nodes := ShutdownNodes(in.Nodes)
	pods := slices.DeleteFunc(slices.Clone(in.Pods), func(pod corev1.Pod) bool { return !slices.Contains(nodes, pod.Spec.NodeName) })
	decision := in.objects(ShutdownGracePeriods(pods, bound).next(live, bound))
	if decision.Restarts && !atRest(in.masterPool()) {
		return Decision{Result: &patch.Result{State: patch.Progressing, Reason: ReasonSettling,
			Message: "The master pool is being updated; graceful shutdown is configured after that"}}
	}
	return decision
}

const (
	kubeletConfiguration = `{"shutdownGracePeriod":%q,"shutdownGracePeriodCriticalPods":%q}`
	// logindConfig is a file of mode 0644 in Ignition 3.2.0. The kubelet itself writes 99-kubelet.conf.
	logindConfig = `{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/systemd/logind.conf.d/90-sno-graceful-shutdown.conf",` +
		`"mode":420,"overwrite":true,"contents":{"source":"data:text/plain;charset=utf-8;base64,%s"}}]}}`
)

// objects returns both objects. logind delays a shutdown for as long as the kubelet needs.
func (in Inputs) objects(periods GracePeriods) Decision {
	kubelet := fmt.Appendf(nil, kubeletConfiguration, periods.Total, periods.Critical)
	logind := fmt.Appendf(nil, "[Login]\nInhibitDelayMaxSec=%d\n", int64(periods.Total/time.Second))
	files := fmt.Appendf(nil, logindConfig, base64.StdEncoding.EncodeToString(logind))
	live, file := in.ourKubeletConfig(), in.MachineConfig
	same := live != nil && file != nil && live.Spec.KubeletConfig != nil &&
		sameJSON(live.Spec.KubeletConfig.Raw, kubelet) && sameJSON(file.Spec.Config.Raw, files)
	return Decision{
		Restarts: !same,
		KubeletConfig: mcfgv1ac.KubeletConfig(ShutdownName).WithSpec(mcfgv1ac.KubeletConfigSpec().
			WithMachineConfigPoolSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{MasterPoolLabel: ""})).
			WithKubeletConfig(runtime.RawExtension{Raw: kubelet})),
		MachineConfig: mcfgv1ac.MachineConfig(ShutdownMachineConfigName).
			WithLabels(map[string]string{RoleLabel: MasterPool}).
			WithSpec(mcfgv1ac.MachineConfigSpec().WithConfig(runtime.RawExtension{Raw: files})),
	}
}

func sameJSON(a, b []byte) bool {
	var one, other any
	return json.Unmarshal(a, &one) == nil && json.Unmarshal(b, &other) == nil && reflect.DeepEqual(one, other)
}

// ShutdownNodes returns the names of the control-plane nodes, or of the only node, whose pods decide over the grace periods.
func ShutdownNodes(nodes []corev1.Node) []string {
	var names []string
	for i := range nodes {
		if IsControlPlane(&nodes[i]) || len(nodes) == 1 {
			names = append(names, nodes[i].Name)
		}
	}
	return names
}

// atRest reports whether the pool takes no other config, or takes all of them when it is no longer paused.
func atRest(pool *mcfgv1.MachineConfigPool) bool {
	return pool.Spec.Paused || (is(pool, mcfgv1.MachineConfigPoolUpdated) && !is(pool, mcfgv1.MachineConfigPoolUpdating))
}

func is(pool *mcfgv1.MachineConfigPool, condition mcfgv1.MachineConfigPoolConditionType) bool {
	return slices.ContainsFunc(pool.Status.Conditions, func(c mcfgv1.MachineConfigPoolCondition) bool {
		return c.Type == condition && c.Status == corev1.ConditionTrue
	})
}
