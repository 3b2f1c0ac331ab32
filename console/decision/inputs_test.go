// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"errors"
	"testing"

	operatorv1 "github.com/openshift/api/operator/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/console/decision"
	"github.com/solonode/sno/console/internal/fixture"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology"
	"github.com/solonode/sno/topology/topologytest"
)

func TestValidate(t *testing.T) {
	budget := func(name string) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-console", Name: name}}
	}
	budgets := func(in *decision.Inputs) {
		in.ConsoleBudget, in.DownloadsBudget = budget("console"), budget("downloads")
	}
	wrongVersion, elsewhere := version(), fixture.Manifest("console")
	wrongVersion.Name, elsewhere.Namespace = "cluster", "default"
	for name, test := range map[string]struct {
		in decision.Inputs
		ok bool
	}{
		"no objects":         {decision.Inputs{}, true},
		"all objects":        {inputs(managed(""), budgets), true},
		"ClusterVersion":     {decision.Inputs{ClusterVersion: wrongVersion}, false},
		"operator":           {decision.Inputs{Operator: &operatorv1.Console{ObjectMeta: metav1.ObjectMeta{Name: "console"}}}, false},
		"console elsewhere":  {decision.Inputs{Console: elsewhere}, false},
		"console swapped":    {decision.Inputs{Console: fixture.Manifest("downloads")}, false},
		"downloads swapped":  {decision.Inputs{Downloads: fixture.Manifest("console")}, false},
		"console's budget":   {decision.Inputs{ConsoleBudget: budget("downloads")}, false},
		"downloads's budget": {decision.Inputs{DownloadsBudget: budget("console")}, false},
	} {
		if err := test.in.Validate(); (err == nil) != test.ok || (err != nil && !errors.Is(err, decision.ErrInputs)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A Cluster that was not read must not count as highly available.
func TestClusterNotRead(t *testing.T) {
	for name, cluster := range map[string]topology.Cluster{
		"zero": {}, "no infrastructure": {ControlPlane: topology.ReadingOf(topologytest.SR)}, "no control plane": {Infrastructure: topology.ReadingOf(topologytest.SR)},
	} {
		in := inputs()
		in.Cluster = &cluster
		decided := decision.Decide(in)
		for which, step := range map[string]patch.Step{"console": decided.Console, "downloads": decided.Downloads} {
			if step.Intent != nil || step.Release || step.Result == nil || step.Result.Reason != "Invalid" {
				t.Errorf("Decide, %s, %s: %+v, want Invalid", which, name, step)
			}
		}
	}
}
