package machineconfig

import (
	"encoding/json"
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

// ShutdownSettle is how long a Decision that Restarts should have been the same before it is carried out, so that a node which comes
// and goes, or a pod that asks for a long end and is gone in a minute, restarts nothing.
const ShutdownSettle = 10 * time.Minute

// Step is what to do with one of the two objects of the graceful shutdown: apply Intent, or Delete it, or neither.
//
// Both objects are ours. This is the one place where sno makes objects: apply Intent also where there is none.
type Step[T any] struct {
	Intent *T
	Delete bool
}

// Decision is what to do about the graceful shutdown. Carry out both steps one right after the other, the MachineConfig first: the
// operator waits a few seconds before it renders a new config, and every rendered config is a restart of the node.
type Decision struct {
	// MachineConfig is for the one called ShutdownMachineConfigName, KubeletConfig for ShutdownName.
	MachineConfig Step[mcfgv1ac.MachineConfigApplyConfiguration]
	KubeletConfig Step[mcfgv1ac.KubeletConfigApplyConfiguration]
	// Restarts tells that carrying it out changes the machine config, so that the control-plane node restarts, at once or when a
	// person ends the pause of its pool.
	Restarts bool
	// Result is what there is to say; nil when the objects are applied, and Observe tells how they stand.
	Result *patch.Result
}

// Decide is the decision about the graceful shutdown. It is pure. It needs everything in Inputs but what belongs to drains.
//
// The objects are made, and the grace periods grow, only while the pool is at rest or paused; they never shrink by themselves (see
// GracePeriods). Both go when the topology ends the need, when a person opts out, and when another KubeletConfig comes for the pool.
func Decide(in Inputs) Decision {
	for _, check := range checks() {
		if result := check.Evaluate(in); result != nil {
			if check.letGo && result.State != patch.Failed {
				return in.letGo(result)
			}
			return Decision{Result: result}
		}
	}
	return in.keep()
}

func (in Inputs) letGo(result *patch.Result) Decision {
	config, file := in.ourKubeletConfig() != nil, in.MachineConfig != nil
	decision := Decision{Restarts: config || file, Result: result}
	decision.KubeletConfig.Delete, decision.MachineConfig.Delete = config, file
	return decision
}

func (in Inputs) keep() Decision {
	var live []byte
	if config := in.ourKubeletConfig(); config != nil && config.Spec.KubeletConfig != nil {
		live = config.Spec.KubeletConfig.Raw
	}
	has, err := readGracePeriods(live)
	if err != nil {
		return Decision{Result: invalid(err)}
	}
	bound := in.ShutdownBound
	if bound == 0 {
		bound = DefaultShutdownBound
	}
	want := ShutdownGracePeriods(in.podsOfControlPlane(), bound).next(has, bound)
	decision, err := in.write(want)
	if err != nil {
		return Decision{Result: invalid(err)}
	}
	if decision.Restarts && !atRest(in.masterPool()) {
		return Decision{Result: &patch.Result{State: patch.Progressing, Reason: ReasonSettling,
			Message: "The master pool is taking another machine config; the kubelet is told how to stop pods when that is done"}}
	}
	return decision
}

// write is both objects with these grace periods.
func (in Inputs) write(periods GracePeriods) (Decision, error) {
	kubelet, err := periods.kubeletConfiguration()
	if err != nil {
		return Decision{}, err
	}
	files, err := logindConfig(periods.Total)
	if err != nil {
		return Decision{}, err
	}
	config, file := in.ourKubeletConfig(), in.MachineConfig
	same := config != nil && file != nil && config.Spec.KubeletConfig != nil &&
		sameJSON(config.Spec.KubeletConfig.Raw, kubelet) && sameJSON(file.Spec.Config.Raw, files)
	decision := Decision{Restarts: !same}
	decision.KubeletConfig.Intent = mcfgv1ac.KubeletConfig(ShutdownName).WithSpec(mcfgv1ac.KubeletConfigSpec().
		WithMachineConfigPoolSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{MasterPoolLabel: ""})).
		WithKubeletConfig(runtime.RawExtension{Raw: kubelet}))
	decision.MachineConfig.Intent = mcfgv1ac.MachineConfig(ShutdownMachineConfigName).
		WithLabels(map[string]string{RoleLabel: MasterPool}).
		WithSpec(mcfgv1ac.MachineConfigSpec().WithConfig(runtime.RawExtension{Raw: files}))
	return decision, nil
}

func sameJSON(a, b []byte) bool {
	var one, other any
	return json.Unmarshal(a, &one) == nil && json.Unmarshal(b, &other) == nil && reflect.DeepEqual(one, other)
}

// podsOfControlPlane are the pods that end when a node of the control plane goes down.
func (in Inputs) podsOfControlPlane() []corev1.Pod {
	var pods []corev1.Pod
	for _, pod := range in.Pods {
		i := slices.IndexFunc(in.Nodes, func(node corev1.Node) bool { return node.Name == pod.Spec.NodeName })
		if i >= 0 && (isControlPlane(&in.Nodes[i]) || len(in.Nodes) == 1) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// atRest tells whether a new machine config is the only one that the pool would be taking: none is under way, or all wait for the end
// of a pause.
func atRest(pool *mcfgv1.MachineConfigPool) bool {
	return pool.Spec.Paused || (is(pool, mcfgv1.MachineConfigPoolUpdated) && !is(pool, mcfgv1.MachineConfigPoolUpdating))
}

func is(pool *mcfgv1.MachineConfigPool, condition mcfgv1.MachineConfigPoolConditionType) bool {
	return slices.ContainsFunc(pool.Status.Conditions, func(c mcfgv1.MachineConfigPoolCondition) bool {
		return c.Type == condition && c.Status == corev1.ConditionTrue
	})
}
