package machineconfig_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology"
)

// unread are Clusters that a host can build without reading an Infrastructure. Each of them would act as HighlyAvailable.
var unread = map[string]topology.Cluster{
	"zero":                 {},
	"control plane only":   {ControlPlane: topology.ReadingOf(sr)},
	"infrastructure only":  {Infrastructure: topology.ReadingOf(sr)},
	"a name of no mode":    {ControlPlane: topology.Reading{Mode: unknown}, Infrastructure: topology.ReadingOf(sr)},
	"what it reports only": {ControlPlane: topology.Reading{Reported: sr}, Infrastructure: topology.ReadingOf(sr)},
}

// No function answers for a cluster that nobody read.
func TestUnreadCluster(t *testing.T) {
	for name, cluster := range unread {
		in := single(func(in *machineconfig.Inputs) { in.Cluster, in.Node = &cluster, "m1" })
		if err := in.Validate(); !errors.Is(err, topology.ErrClusterNotRead) {
			t.Errorf("%s: Validate: %v", name, err)
		}
		if masters, arbiters, err := machineconfig.ExpectedControlPlaneNodes(cluster); masters != 0 || arbiters != 0 || !errors.Is(err, topology.ErrClusterNotRead) {
			t.Errorf("%s: %d masters and %d arbiters, %v", name, masters, arbiters, err)
		}
		start, held, err := machineconfig.MayStart(machineconfig.Turn{
			Cluster: cluster, Pools: pointers(in.Pools), Nodes: pointers([]corev1.Node{node("m1", "master"), node("w1", "worker")}), Asking: []string{"m1", "w1"},
		})
		if len(start)+len(held) > 0 || !errors.Is(err, topology.ErrClusterNotRead) {
			t.Errorf("%s: %v start, %v are held, %v", name, start, held, err)
		}
		for _, policy := range machineconfig.DrainPolicies() {
			in.Policy = policy
			if decision, err := machineconfig.DrainRequired(in); decision != (machineconfig.DrainDecision{}) || !errors.Is(err, topology.ErrClusterNotRead) {
				t.Errorf("%s: %+v, %v", name, decision, err)
			}
		}
		decision := machineconfig.Decide(in)
		if decision.Result == nil || decision.Result.State != patch.Failed || decision.Restarts || decision.KubeletConfig.Intent != nil || decision.KubeletConfig.Delete {
			t.Errorf("%s: %+v", name, decision)
		}
		n := annotated(node("m1", "master"), map[string]string{machineconfig.CurrentConfigAnnotation: "rendered-1"})
		if step := machineconfig.AnnotateTopology(in, &n); step.Intent != nil || step.Release || step.Result == nil || step.Result.State != patch.Failed {
			t.Errorf("%s: %+v", name, step)
		}
		if result := machineconfig.Observe(in, machineconfig.Decision{}); result.State != patch.Failed {
			t.Errorf("%s: Observe: %s", name, result)
		}
	}
}

// The zero values answer nothing.
func TestZeroValues(t *testing.T) {
	if start, held, err := machineconfig.MayStart(machineconfig.Turn{}); start != nil || held != nil || !errors.Is(err, topology.ErrClusterNotRead) {
		t.Errorf("%v start, %v are held, %v", start, held, err)
	}
	if decision, err := machineconfig.DrainRequired(machineconfig.Inputs{}); decision != (machineconfig.DrainDecision{}) || !errors.Is(err, topology.ErrClusterNotRead) {
		t.Errorf("%+v, %v", decision, err)
	}
	if decision, err := machineconfig.DrainRequired(machineconfig.Inputs{Cluster: clusterOf(sr), Policy: "all"}); decision.Required || !errors.Is(err, machineconfig.ErrInputs) {
		t.Errorf("%+v, %v", decision, err)
	}
	for name, result := range map[string]*patch.Result{
		"Decide":           machineconfig.Decide(machineconfig.Inputs{}).Result,
		"AnnotateTopology": machineconfig.AnnotateTopology(machineconfig.Inputs{}, &corev1.Node{}).Result,
	} {
		if result == nil || result.State != patch.Waiting {
			t.Errorf("%s: %v", name, result)
		}
	}
	if result := machineconfig.Observe(machineconfig.Inputs{}, machineconfig.Decision{}); result.State != patch.Waiting {
		t.Errorf("Observe: %s", result)
	}
}
