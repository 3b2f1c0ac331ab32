package machineconfig

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/topology"
)

// check is a precondition, and what follows when it has something to say.
type check struct {
	patch.Check[Inputs]
	// letGo tells that the objects of the graceful shutdown go. Where it is false, everything stays as it is.
	letGo bool
}

func checks() []check {
	named := func(name string, letGo bool, evaluate func(Inputs) *patch.Result) check {
		return check{patch.Check[Inputs]{Name: name, Evaluate: evaluate}, letGo}
	}
	return []check{
		named("Valid", false, checkValid),
		named("TopologyKnown", false, checkTopologyKnown),
		named("NodesKnown", false, checkNodesKnown),
		named("ObjectsOurs", false, checkObjectsOurs),
		named("OptedOut", true, checkOptedOut),
		named("Wanted", true, checkWanted),
		named("PoolThere", false, checkPoolThere),
		named("KubeletConfigFree", true, checkKubeletConfigFree),
		named("PodsKnown", false, checkPodsKnown),
	}
}

// Checks are the preconditions for telling the kubelet to stop pods gracefully, in order. The first that has something to say ends the
// decision; whether the objects then go or everything stays as it is, Decide knows.
func Checks() patch.Chain[Inputs] {
	var chain patch.Chain[Inputs]
	for _, c := range checks() {
		chain = append(chain, c.Check)
	}
	return chain
}

func checkValid(in Inputs) *patch.Result {
	if err := in.Validate(); err != nil {
		return invalid(err)
	}
	return nil
}

func checkTopologyKnown(in Inputs) *patch.Result { return patch.TopologyKnown(in.Cluster) }

func checkNodesKnown(in Inputs) *patch.Result {
	if in.Nodes != nil {
		return nil
	}
	return &patch.Result{State: patch.Waiting, Reason: ReasonWaitingForNodes, Message: "The nodes are not known yet; nothing is changed until they are"}
}

// checkObjectsOurs leaves objects alone that have our names and are somebody else's, or that somebody put something into.
func checkObjectsOurs(in Inputs) *patch.Result {
	if live := in.ourKubeletConfig(); live != nil {
		if result := foreign(live, "KubeletConfig "+ShutdownName); result != nil {
			return result
		}
	}
	if in.MachineConfig != nil {
		return foreign(in.MachineConfig, "MachineConfig "+ShutdownMachineConfigName)
	}
	return nil
}

func foreign(object metav1.Object, what string) *patch.Result {
	others, err := ownership.Others(object, ".spec", FieldOwner)
	switch {
	case err != nil:
		return invalid(err)
	case len(others) == 0:
		return nil
	}
	return &patch.Result{State: patch.Blocked, Reason: ReasonFieldOwnedByOther, Message: fmt.Sprintf(
		"The spec of the %s is written by %q, so it stays as it is; delete it to have the kubelet stop pods gracefully", what, others)}
}

func checkOptedOut(in Inputs) *patch.Result {
	var out bool
	for _, object := range in.annotated() {
		out = out || patch.OptsOut(object.GetAnnotations(), Name)
	}
	if !out {
		return nil
	}
	return &patch.Result{State: patch.OptedOut, Reason: ReasonOptedOut,
		Message: "The annotation " + patch.OptOutAnnotation + " keeps this module away; remove it to have the kubelet stop pods gracefully"}
}

// annotated are the objects on which a person may keep the module away from the graceful shutdown.
func (in Inputs) annotated() []metav1.Object {
	var objects []metav1.Object
	if in.MachineConfiguration != nil {
		objects = append(objects, in.MachineConfiguration)
	}
	if pool := in.masterPool(); pool != nil {
		objects = append(objects, pool)
	}
	if live := in.ourKubeletConfig(); live != nil {
		objects = append(objects, live)
	}
	if in.MachineConfig != nil {
		objects = append(objects, in.MachineConfig)
	}
	return objects
}

// checkWanted: where there are other nodes, pods on a node that goes down gracefully stay Ready and are sent requests that they no
// longer answer, which is why the machine-config operator took it back (U-MCO-8). On the only node there is
// nobody else to send requests to.
func checkWanted(in Inputs) *patch.Result {
	none := func(message string) *patch.Result {
		return &patch.Result{State: patch.NotNeeded, Reason: ReasonNotNeeded, Message: message + in.Cluster.UnknownValues()}
	}
	switch {
	case in.Graceful == GracefulOn:
		return nil
	case in.Graceful == GracefulOff:
		return none("Graceful shutdown is switched off")
	case topology.ReadingOf(in.Cluster.ControlPlane.Mode).Mode != configv1.SingleReplicaTopologyMode:
		return none("Nodes of this control plane are drained before they restart")
	case len(in.Nodes) == 0:
		return none("There is no node")
	case len(in.Nodes) != 1:
		return none("There are other nodes, from which pods of a node that goes down gracefully would go on being sent requests")
	}
	return nil
}

func checkPoolThere(in Inputs) *patch.Result {
	pool := in.masterPool()
	if pool != nil {
		if _, labelled := pool.Labels[MasterPoolLabel]; labelled {
			return nil
		}
	}
	return &patch.Result{State: patch.Waiting, Reason: ReasonWaitingForObject,
		Message: "There is no MachineConfigPool master with the label " + MasterPoolLabel + ", through which the kubelet is configured"}
}

// checkKubeletConfigFree: the operator writes a whole kubelet.conf for each KubeletConfig of a pool, and the last one wins. A second
// one beside a person's would take everything back that theirs says.
func checkKubeletConfigFree(in Inputs) *patch.Result {
	pool := in.masterPool()
	for i := range in.KubeletConfigs {
		other := &in.KubeletConfigs[i]
		if other.Name == ShutdownName || !chooses(other, pool) {
			continue
		}
		message := "Another KubeletConfig configures the master pool, and a second one would replace all that it says; " +
			"add shutdownGracePeriod and shutdownGracePeriodCriticalPods to that one"
		if configured(other) {
			message = "Another KubeletConfig of the master pool has grace periods for shutdowns of its own; they stay"
		}
		return &patch.Result{State: patch.Blocked, Reason: ReasonFieldOwnedByOther, Message: message}
	}
	return nil
}

// chooses tells whether a KubeletConfig is for a pool. One whose selector cannot be read is for none.
func chooses(config *mcfgv1.KubeletConfig, pool *mcfgv1.MachineConfigPool) bool {
	chosen, err := selects(config.Spec.MachineConfigPoolSelector, pool.Labels)
	return err == nil && chosen
}

// configured tells whether a KubeletConfig says anything about graceful shutdowns, also in a way that is not known here.
func configured(config *mcfgv1.KubeletConfig) bool {
	if config.Spec.KubeletConfig == nil {
		return false
	}
	periods, err := readGracePeriods(config.Spec.KubeletConfig.Raw)
	return err != nil || periods != GracePeriods{}
}

func checkPodsKnown(in Inputs) *patch.Result {
	if in.Pods != nil {
		return nil
	}
	return &patch.Result{State: patch.Waiting, Reason: ReasonWaitingForNodes,
		Message: "The pods of the control-plane node are not known yet; nothing is changed until they are"}
}

func invalid(err error) *patch.Result {
	return &patch.Result{State: patch.Failed, Reason: ReasonInvalid, Message: "The inputs cannot be understood: " + err.Error()}
}
