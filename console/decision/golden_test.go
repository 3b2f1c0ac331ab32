// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"io/fs"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/console/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/admission"
	"github.com/solonode/sno/patch/golden"
	"github.com/solonode/sno/patch/operand"
)

type wanted struct {
	Apply   any      `json:"apply,omitempty"`
	Unset   []string `json:"unset,omitempty"`
	Release bool     `json:"release,omitempty"`
	Result  string   `json:"result,omitempty"`
}

func wantedOf(step patch.Step) wanted {
	out := wanted{Unset: step.Unset, Release: step.Release}
	if step.Intent != nil {
		out.Apply = step.Intent
	}
	if step.Result != nil {
		out.Result = step.Result.String()
	}
	return out
}

func TestGolden(t *testing.T) {
	golden.Test(t, "testdata/decide", func(t *testing.T, input fs.FS) map[string]string {
		in := decision.Inputs{
			Cluster:         golden.Topology(t, input),
			Operator:        golden.Object[operatorv1.Console](t, input, "consoles.operator.openshift.io", "", "cluster"),
			ClusterVersion:  golden.Object[configv1.ClusterVersion](t, input, "clusterversions.config.openshift.io", "", "version"),
			Console:         golden.Object[appsv1.Deployment](t, input, "deployments.apps", "openshift-console", "console"),
			Downloads:       golden.Object[appsv1.Deployment](t, input, "deployments.apps", "openshift-console", "downloads"),
			ConsoleBudget:   golden.Object[policyv1.PodDisruptionBudget](t, input, "poddisruptionbudgets.policy", "openshift-console", "console"),
			DownloadsBudget: golden.Object[policyv1.PodDisruptionBudget](t, input, "poddisruptionbudgets.policy", "openshift-console", "downloads"),
		}
		decided := decision.Decide(in)
		out, err := yaml.Marshal(map[string]any{
			"clusterVersion": wantedOf(decided.ClusterVersion), "console": wantedOf(decided.Console), "downloads": wantedOf(decided.Downloads),
			"result": patch.Combine(decided.ClusterVersion.Result, decided.Console.Result, decided.Downloads.Result).String(),
		})
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{"want.yaml": string(out)}
	})
}

func TestPolicies(t *testing.T) {
	golden.File(t, "../config/admission/policies.yaml", admission.Policies("console-controller",
		admission.Writable{Group: "apps", Resource: "deployments", Namespaces: []string{console.Namespace},
			Fields: append(operand.Fields(), admission.ReplacedField(console.Name))},
		admission.Overrides([]configv1.ComponentOverride{decision.Override()}),
		admission.Conditions("operator.openshift.io", "consoles", decision.ConditionPrefix),
	))
}
