// SPDX-License-Identifier: Apache-2.0

package decision

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch"
)

// ShutdownDebounce is how long a Decision that Restarts must be stable before it is carried out.
const ShutdownDebounce = 10 * time.Minute

// Decision is what to write for the graceful shutdown: apply both objects, delete those that exist, or neither. Write
// both within a few seconds, since every config that the operator renders restarts the node.
type Decision struct {
	MachineConfig, KubeletConfig patch.Step
	Restarts                     bool          // the node restarts for it, at once or when its pool is no longer paused
	Result                       *patch.Result // nil if the objects are applied; then call Observe
}

// Decide returns the decision about the graceful shutdown. It creates objects and extends grace periods only while the
// pool is settled or paused.
func Decide(in Inputs) Decision {
	result, ours := Checks().Run(in)
	if result == nil {
		return in.apply()
	}
	exists := ours == patch.ReleaseFields && len(in.shutdownObjects()) > 0
	return Decision{
		MachineConfig: patch.Step{Delete: exists && in.MachineConfig != nil}, KubeletConfig: patch.Step{Delete: exists && in.ownKubeletConfig() != nil},
		Restarts: exists, Result: result,
	}
}

func (in Inputs) apply() Decision {
	live, err := readGracePeriods(in.ownKubeletConfig())
	if err != nil {
		return Decision{Result: patch.Invalid(err)}
	}
	bound := cmp.Or(in.ShutdownBound, machineconfig.DefaultShutdownBound)
	nodes := machineconfig.ShutdownNodes(in.Nodes)
	pods := slices.DeleteFunc(slices.Clone(in.Pods), func(pod corev1.Pod) bool { return !slices.Contains(nodes, pod.Spec.NodeName) })
	decision := in.intents(machineconfig.ShutdownGracePeriods(pods, bound).Next(live, bound))
	if decision.Restarts && !settled(in.masterPool()) {
		return Decision{Result: &patch.Result{State: patch.Progressing, Reason: ReasonSettling,
			Message: "The master pool is being updated; graceful shutdown is configured after that"}}
	}
	return decision
}

const (
	kubeletConfiguration = `{"shutdownGracePeriod":%q,"shutdownGracePeriodCriticalPods":%q}`
	// logindConfig is a file of mode 0644 in Ignition 3.2.0. Its name sorts before the kubelet's own 99-kubelet.conf.
	logindConfig = `{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/systemd/logind.conf.d/90-sno-graceful-shutdown.conf",` +
		`"mode":420,"overwrite":true,"contents":{"source":"data:text/plain;charset=utf-8;base64,%s"}}]}}`
)

func (in Inputs) intents(periods machineconfig.GracePeriods) Decision {
	kubelet := fmt.Appendf(nil, kubeletConfiguration, periods.Total, periods.Critical)
	logind := fmt.Appendf(nil, "[Login]\nInhibitDelayMaxSec=%d\n", int64(periods.Total/time.Second))
	files := fmt.Appendf(nil, logindConfig, base64.StdEncoding.EncodeToString(logind))
	live, file := in.ownKubeletConfig(), in.MachineConfig
	same := live != nil && file != nil && live.Spec.KubeletConfig != nil &&
		sameJSON(live.Spec.KubeletConfig.Raw, kubelet) && sameJSON(file.Spec.Config.Raw, files)
	return Decision{
		Restarts: !same,
		KubeletConfig: patch.Step{Create: live == nil, Intent: mcfgv1ac.KubeletConfig(machineconfig.ShutdownName).WithSpec(mcfgv1ac.KubeletConfigSpec().
			WithMachineConfigPoolSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{machineconfig.MasterPoolLabel: ""})).
			WithKubeletConfig(runtime.RawExtension{Raw: kubelet}))},
		MachineConfig: patch.Step{Create: file == nil, Intent: mcfgv1ac.MachineConfig(machineconfig.ShutdownMachineConfigName).
			WithLabels(map[string]string{machineconfig.RoleLabel: machineconfig.MasterPool}).
			WithSpec(mcfgv1ac.MachineConfigSpec().WithConfig(runtime.RawExtension{Raw: files}))},
	}
}

func sameJSON(a, b []byte) bool {
	var one, other any
	return json.Unmarshal(a, &one) == nil && json.Unmarshal(b, &other) == nil && reflect.DeepEqual(one, other)
}

// settled reports whether the pool is not being updated.
func settled(pool *mcfgv1.MachineConfigPool) bool {
	return pool.Spec.Paused || (hasCondition(pool, mcfgv1.MachineConfigPoolUpdated) && !hasCondition(pool, mcfgv1.MachineConfigPoolUpdating))
}

func hasCondition(pool *mcfgv1.MachineConfigPool, condition mcfgv1.MachineConfigPoolConditionType) bool {
	return slices.ContainsFunc(pool.Status.Conditions, func(c mcfgv1.MachineConfigPoolCondition) bool {
		return c.Type == condition && c.Status == corev1.ConditionTrue
	})
}

func readGracePeriods(config *mcfgv1.KubeletConfig) (machineconfig.GracePeriods, error) {
	var fields struct {
		ShutdownGracePeriod, ShutdownGracePeriodCriticalPods metav1.Duration
	}
	if config == nil || config.Spec.KubeletConfig == nil || len(config.Spec.KubeletConfig.Raw) == 0 {
		return machineconfig.GracePeriods{}, nil
	}
	if err := json.Unmarshal(config.Spec.KubeletConfig.Raw, &fields); err != nil {
		return machineconfig.GracePeriods{}, fmt.Errorf("reading a kubelet's configuration: %w", err)
	}
	return machineconfig.GracePeriods{Total: fields.ShutdownGracePeriod.Duration, Critical: fields.ShutdownGracePeriodCriticalPods.Duration}, nil
}
