// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/agent"
	"github.com/solonode/sno/fleet/configuration"
	"github.com/solonode/sno/fleet/rollout"
	"github.com/solonode/sno/patch/golden"
)

// What config/ installs passes the checks, which the other tests of this package have of these functions.
func TestConfig(t *testing.T) {
	write := func(path string, objects ...any) {
		text := []string{"# Written by go test ./rollout -update, in fleet.\n"}
		for _, o := range objects {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			if err != nil {
				t.Fatal(err)
			}
			delete(content, "status")
			document, err := yaml.Marshal(withoutEmpty(content))
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, string(document))
		}
		golden.File(t, path, strings.Join(text, "---\n"))
	}
	var placements []any
	for _, p := range rollout.Placements(fleet.Namespace, "global") {
		placements = append(placements, p)
	}
	write("../config/placements/placements.yaml", placements...)
	hash, err := agent.Hash()
	if err != nil {
		t.Fatal(err)
	}
	config := configuration.Configuration{
		Modules: []string{"approver", "ingress", "machineconfig"}, DrainPolicy: "never", Placement: "topology",
		Image: "registry.example.com/{module}-controller:v1", Tool: "registry.example.com/kubectl-sno:v1", Manifests: hash,
	}.Object(fleet.Namespace, "single-nodes")
	write("../config/example/rollout.yaml", config, rollout.AddOn(
		rollout.Group{Namespace: fleet.Namespace, Placement: rollout.SingleNodes, Configuration: config.Name, Limits: rollout.DefaultLimits},
		rollout.Group{Namespace: fleet.Namespace, Placement: rollout.Canaries, Configuration: config.Name, Limits: rollout.DefaultLimits},
	))
}

// withoutEmpty removes what only the Go types have: maps without content, and zero numbers of clusters.
func withoutEmpty(content map[string]any) map[string]any {
	for key, value := range content {
		if below, ok := value.(map[string]any); ok && len(withoutEmpty(below)) == 0 || value == nil || key == "clustersPerDecisionGroup" {
			delete(content, key)
		}
	}
	return content
}
