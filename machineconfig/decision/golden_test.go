// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"errors"
	"io/fs"
	"testing"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/decision"
	"github.com/solonode/sno/machineconfig/internal/fixture"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/admission"
	"github.com/solonode/sno/patch/golden"
)

type wanted struct {
	Apply    []any        `json:"apply,omitempty"`
	Delete   bool         `json:"delete,omitempty"`
	Restarts bool         `json:"restarts,omitempty"`
	Result   string       `json:"result,omitempty"`   // of Decide
	Observed string       `json:"observed,omitempty"` // of Observe
	Waiting  []string     `json:"waiting,omitempty"`  // of PendingChanges
	Nodes    []wantedNode `json:"nodes,omitempty"`
}

type wantedNode struct {
	Name     string            `json:"name"`
	Drain    map[string]string `json:"drain"`              // by policy
	Annotate string            `json:"annotate,omitempty"` // of AnnotateTopology; so is Topology
	Topology string            `json:"topology,omitempty"`
}

func TestGolden(t *testing.T) {
	golden.Test(t, "testdata/decide", func(t *testing.T, input fs.FS) map[string]string {
		in := gathered(t, input)
		d := decision.Decide(in)
		w := wanted{Delete: deletes(d), Restarts: d.Restarts, Result: text(d.Result)}
		if d.MachineConfig.Intent != nil {
			w.Apply = append(w.Apply, d.MachineConfig.Intent, d.KubeletConfig.Intent)
		}
		if d.Result == nil {
			w.Observed = decision.Observe(in, d).String()
		}
		var err error
		if w.Waiting, err = machineconfig.PendingChanges(fixture.Pointers(in.Pools), fixture.Pointers(in.Nodes)); err != nil {
			t.Fatal(err)
		}
		for i := range in.Nodes {
			w.Nodes = append(w.Nodes, wantedOf(t, in, &in.Nodes[i]))
		}
		out, err := yaml.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{"want.yaml": string(out)}
	})
}

func text(result *patch.Result) string {
	if result == nil {
		return ""
	}
	return result.String()
}

func wantedOf(t *testing.T, in decision.Inputs, node *corev1.Node) wantedNode {
	t.Helper()
	step := decision.AnnotateTopology(in, node)
	w := wantedNode{Name: node.Name, Drain: map[string]string{}, Topology: text(step.Result)}
	if intent, ok := step.Intent.(*corev1ac.NodeApplyConfiguration); ok {
		w.Annotate = intent.Annotations[machineconfig.TopologyAnnotation]
	}
	in.Node = node.Name
	for _, in.Policy = range []machineconfig.DrainPolicy{machineconfig.DrainNever, machineconfig.DrainWorkers} {
		decided, err := machineconfig.DrainRequired(in.Inputs)
		word := map[bool]string{true: "yes", false: "no"}[decided.Required]
		w.Drain[string(in.Policy)] = word + " (" + decided.Reason + "): " + decided.Message
		if err != nil {
			w.Drain[string(in.Policy)] = err.Error()
		}
	}
	return w
}

func gathered(t *testing.T, input fs.FS) decision.Inputs {
	t.Helper()
	const mco = "machineconfiguration.openshift.io"
	in := decision.Inputs{
		Inputs: machineconfig.Inputs{
			Cluster: golden.Topology(t, input), Nodes: golden.Objects[corev1.Node](t, input, "nodes", ""),
			Pods: []corev1.Pod{}, Budgets: []policyv1.PodDisruptionBudget{}, ReplicaSets: []appsv1.ReplicaSet{}, StatefulSets: []appsv1.StatefulSet{},
		},
		MachineConfiguration: golden.Object[operatorv1.MachineConfiguration](t, input, "machineconfigurations.operator.openshift.io", "", "cluster"),
		MachineConfig:        golden.Object[mcfgv1.MachineConfig](t, input, "machineconfigs."+mco, "", machineconfig.ShutdownMachineConfigName),
		Pools:                golden.Objects[mcfgv1.MachineConfigPool](t, input, "machineconfigpools."+mco, ""),
		KubeletConfigs:       golden.Objects[mcfgv1.KubeletConfig](t, input, "kubeletconfigs."+mco, ""),
	}
	namespaces, err := fs.ReadDir(input, "namespaces")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, namespace := range namespaces {
		in.Pods = append(in.Pods, golden.Objects[corev1.Pod](t, input, "pods", namespace.Name())...)
		in.Budgets = append(in.Budgets, golden.Objects[policyv1.PodDisruptionBudget](t, input, "poddisruptionbudgets.policy", namespace.Name())...)
		in.ReplicaSets = append(in.ReplicaSets, golden.Objects[appsv1.ReplicaSet](t, input, "replicasets.apps", namespace.Name())...)
		in.StatefulSets = append(in.StatefulSets, golden.Objects[appsv1.StatefulSet](t, input, "statefulsets.apps", namespace.Name())...)
	}
	return in
}

func TestPolicies(t *testing.T) {
	golden.File(t, "../config/admission/policies.yaml", admission.Policies("machineconfig-controller",
		admission.Writable{Resource: "nodes", Fields: []string{
			".spec.unschedulable", admission.ReplacedField(machineconfig.Name),
			admission.Annotation(machineconfig.TopologyAnnotation), admission.Annotation(machineconfig.LastAppliedDrainAnnotation),
		}},
		admission.Conditions("operator.openshift.io", "machineconfigurations", decision.ConditionPrefix),
	))
}
