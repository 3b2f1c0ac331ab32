package kubeapiserver

import (
	"maps"
	"slices"
	"testing"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/rendertest"
)

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// TestRun runs all steps on one node and compares what kube-apiserver is started with (R-REN-1, R-REN-6).
func TestRun(t *testing.T) {
	for _, profile := range []inputs.Profile{inputs.OpenShift, inputs.Kubernetes} {
		t.Run(string(profile), func(t *testing.T) {
			s := settings(profile)
			st := run(t, s)
			folder := "one-node-" + string(profile) + "/"
			rendertest.Golden(t, folder+"pod.yaml", rendertest.Data(t, st, Namespace, "kube-apiserver-pod-1")["pod.yaml"])
			for name, content := range rendertest.Data(t, st, Namespace, "config-1") {
				rendertest.Golden(t, folder+name, content)
			}
			rendertest.Golden(t, folder+"policy.yaml", rendertest.Data(t, st, Namespace, "kube-apiserver-audit-policies-1")["policy.yaml"])
			rendertest.Golden(t, folder+"objects.txt", inventory(t, st))

			again, err := rendertest.Run(st, Steps(s)...)
			if err != nil || len(again) > 0 {
				t.Errorf("a second run is to write nothing, it wrote %q: %v", again, err)
			}
		})
	}
}
