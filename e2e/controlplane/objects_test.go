// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// The files' names define the order of the objects. Documents of a file keep their order.
func TestReadManifests(t *testing.T) {
	objects, err := readManifests(fstest.MapFS{
		"0010_b.yaml": {Data: []byte("kind: B\n---\n# nothing\n---\nkind: C\n")},
		"0002_a.yaml": {Data: []byte(`{"kind":"A"}`)},
		// Files of later requests are not included.
		"status/0001_s.yaml": {Data: []byte("kind: S\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, o := range objects {
		kinds = append(kinds, o.GetKind())
	}
	if diff := cmp.Diff([]string{"A", "B", "C"}, kinds); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := readManifests(fstest.MapFS{}); !errors.Is(err, errRendered) {
		t.Errorf("no manifests: %v", err)
	}
	if _, err := readManifests(fstest.MapFS{"a.yaml": {Data: []byte("\t")}}); err == nil {
		t.Error("a file that is no YAML is read")
	}
}

func TestDefinitions(t *testing.T) {
	const text = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec:\n  group: config.openshift.io\n  names:\n    kind: APIServer\n    listKind: APIServerList\n"
	if got := defines([]byte(text)); got != "APIServer.config.openshift.io" {
		t.Errorf("it defines %q", got)
	}
	if got := defines([]byte("kind: List\n")); got != "" {
		t.Errorf("it defines %q", got)
	}
	for file, want := range map[string]bool{
		"0000_10_config-operator_01_apiservers-Default.crd.yaml":                                true,
		"0000_10_config-operator_01_schedulers-SelfManagedHA-Default.crd.yaml":                  true,
		"0000_10_config-operator_01_oauths.crd.yaml":                                            true,
		"0000_10_config-operator_01_schedulers-Hypershift.crd.yaml":                             false,
		"0000_10_config-operator_01_infrastructures-SelfManagedHA-DevPreviewNoUpgrade.crd.yaml": false,
		"0000_10_config-operator_01_apiservers-OKD.crd.yaml":                                    false,
	} {
		if got := ofRelease(file); got != want {
			t.Errorf("%s: %t", file, got)
		}
	}
}

func TestDecodeTheInput(t *testing.T) {
	objects, err := decode([]byte(input))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, o := range objects {
		seen[o.GroupVersionKind().GroupKind().String()]++
	}
	want := map[string]int{"Node": 1}
	for _, kind := range []string{
		"Infrastructure", "Network", "APIServer", "Authentication", "OAuth", "Image", "Scheduler", "FeatureGate", "Proxy", "Ingress", "DNS", "Node",
	} {
		want[kind+".config.openshift.io"] = 1
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
