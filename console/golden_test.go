package console_test

import (
	"errors"
	"io/fs"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/mustgather"
	"github.com/solonode/sno/patch/patchtest"
	"github.com/solonode/sno/topology"
)

// wanted is what a golden file says about one decision.
type wanted struct {
	ClusterVersion wantedStep `json:"clusterVersion"`
	Console        wantedStep `json:"console"`
	Downloads      wantedStep `json:"downloads"`
	// Result is what is reported before anything is sent; Observed, with an intent, what is reported once it stands.
	Result   string `json:"result,omitempty"`
	Observed string `json:"observed,omitempty"`
}

// wantedStep is one step: Apply is the intent as it is sent, Unset what it wants absent, Release that what is ours goes.
type wantedStep struct {
	Apply   any      `json:"apply,omitempty"`
	Unset   []string `json:"unset,omitempty"`
	Release bool     `json:"release,omitempty"`
	Result  string   `json:"result,omitempty"`
}

func said(result *patch.Result) string {
	if result == nil {
		return ""
	}
	return result.String()
}

func wantedOf(step console.DeploymentStep) wantedStep {
	out := wantedStep{Unset: step.Unset, Release: step.Release, Result: said(step.Result)}
	if step.Intent != nil {
		out.Apply = step.Intent
	}
	return out
}

func TestGolden(t *testing.T) {
	patchtest.Golden(t, "testdata/decide", func(t *testing.T, input fs.FS) map[string]string {
		tree, err := mustgather.Open(input)
		if err != nil {
			t.Fatal(err)
		}
		var in console.Inputs
		infrastructure, err := tree.Get(schema.GroupResource{Group: configv1.GroupName, Resource: "infrastructures"}, "", "cluster")
		switch {
		case err == nil:
			cluster, err := topology.FromUnstructured(infrastructure)
			if err != nil {
				t.Fatal(err)
			}
			in.Cluster = &cluster
		case !errors.Is(err, mustgather.ErrNotFound):
			t.Fatal(err)
		}
		in.Operator = gathered[operatorv1.Console](t, tree, operatorv1.GroupName, "consoles", "", "cluster")
		in.ClusterVersion = gathered[configv1.ClusterVersion](t, tree, configv1.GroupName, "clusterversions", "", "version")
		in.Console = gathered[appsv1.Deployment](t, tree, appsv1.GroupName, "deployments", "openshift-console", "console")
		in.Downloads = gathered[appsv1.Deployment](t, tree, appsv1.GroupName, "deployments", "openshift-console", "downloads")
		in.ConsoleBudget = gathered[policyv1.PodDisruptionBudget](t, tree, policyv1.GroupName, "poddisruptionbudgets", "openshift-console", "console")
		in.DownloadsBudget = gathered[policyv1.PodDisruptionBudget](t, tree, policyv1.GroupName, "poddisruptionbudgets", "openshift-console", "downloads")

		decision := console.Decide(in)
		want := wanted{
			ClusterVersion: wantedStep{Release: decision.ClusterVersion.Release},
			Console:        wantedOf(decision.Console), Downloads: wantedOf(decision.Downloads), Result: said(decision.Result()),
		}
		if decision.ClusterVersion.Intent != nil {
			want.ClusterVersion.Apply = decision.ClusterVersion.Intent
		}
		if decision.Console.Intent != nil || decision.Downloads.Intent != nil {
			want.Observed = console.Observe(in, decision).String()
		}
		out, err := yaml.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{"want.yaml": string(out)}
	})
}

func gathered[T any](t *testing.T, tree *mustgather.Tree, group, resource, namespace, name string) *T {
	t.Helper()
	object, err := tree.Get(schema.GroupResource{Group: group, Resource: resource}, namespace, name)
	if errors.Is(err, mustgather.ErrNotFound) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		t.Fatal(err)
	}
	return typed
}
