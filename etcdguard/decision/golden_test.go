// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/etcdguard/decision"
	"github.com/solonode/sno/etcdguard/internal/fixture"
	"github.com/solonode/sno/patch/admission"
	"github.com/solonode/sno/patch/golden"
)

func TestGolden(t *testing.T) {
	golden.Test(t, "testdata/decide", func(t *testing.T, input fs.FS) map[string]string {
		in := gathered(t, input)
		d := decision.Decide(in)
		w := wanted{Decision: describe(d), Result: decision.Observe(in).String(), Deprecation: d.Deprecation}
		switch {
		case d.ClusterVersion.Intent != nil:
			w.Apply = d.ClusterVersion.Intent
		case deploymentOf(d) != nil:
			w.Apply = d.Deployment.Intent
		case budgetOf(d) != nil:
			w.Apply = d.Budget.Intent
		}
		if d.Result != nil {
			w.Result = d.Result.String()
		}
		return map[string]string{"want.yaml": string(fixture.Must(yaml.Marshal(w)))}
	})
}

func gathered(t *testing.T, input fs.FS) decision.Inputs {
	t.Helper()
	const namespace, guard, budgets = "openshift-etcd", "etcd-quorum-guard", "poddisruptionbudgets.policy"
	return decision.Inputs{
		Cluster:        golden.Topology(t, input),
		Members:        gatheredMembers(t, input),
		Nodes:          golden.Objects[corev1.Node](t, input, "nodes", ""),
		ClusterVersion: golden.Object[configv1.ClusterVersion](t, input, "clusterversions.config.openshift.io", "", "version"),
		Etcd:           golden.Object[operatorv1.Etcd](t, input, "etcds.operator.openshift.io", "", "cluster"),
		Deployment:     golden.Object[appsv1.Deployment](t, input, "deployments.apps", namespace, guard),
		Budget:         golden.Object[policyv1.PodDisruptionBudget](t, input, budgets, namespace, guard),
		PodsBudget:     golden.Object[policyv1.PodDisruptionBudget](t, input, budgets, namespace, "etcd-guard-pdb"),
		ClientSecret:   golden.Object[corev1.Secret](t, input, "secrets", namespace, "etcd-client") != nil,
		CABundle:       golden.Object[corev1.ConfigMap](t, input, "configmaps", namespace, "etcd-ca-bundle") != nil,
	}
}

// gatheredMembers reads the output of etcdctl; nil if the files are missing.
func gatheredMembers(t *testing.T, input fs.FS) []etcdguard.Member {
	t.Helper()
	var list struct {
		Members []struct {
			ID         uint64
			ClientURLs []string
			IsLearner  bool
		}
	}
	var health []struct {
		Endpoint string
		Health   bool
	}
	for file, into := range map[string]any{"etcd_info/member_list.json": &list, "etcd_info/endpoint_health.json": &health} {
		text, err := fs.ReadFile(input, file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	members := []etcdguard.Member{}
	for _, m := range list.Members {
		member := etcdguard.Member{ID: m.ID, Learner: m.IsLearner}
		for _, h := range health {
			member.Healthy = member.Healthy || (h.Health && slices.Contains(m.ClientURLs, h.Endpoint))
		}
		members = append(members, member)
	}
	return members
}

func TestPolicies(t *testing.T) {
	golden.File(t, "../config/admission/policies.yaml", admission.Policies("etcdguard-controller",
		admission.Overrides(decision.Overrides()),
		admission.Conditions("operator.openshift.io", "etcds", decision.ConditionPrefix),
	))
}
