// SPDX-License-Identifier: Apache-2.0

package embeddedtarget

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/conformance/cluster"
)

var capture = flag.String("capture", "", "folder of YAML files named after scenarios, which TestCapture updates from clusters")

// TestCapture updates the clusters of the catalogue's unit tests.
func TestCapture(t *testing.T) {
	if *capture == "" {
		t.Skip("needs -capture")
	}
	files, err := filepath.Glob(filepath.Join(*capture, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		o := options(strings.TrimSuffix(filepath.Base(file), ".yaml"), SNO)
		o.RealMinReadySeconds = true
		s, err := start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Stop()
		state, err := cluster.Read(t.Context(), s.Cluster.Client(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range state.Pods {
			state.Pods[i].ManagedFields, state.Pods[i].Spec.Volumes, state.Pods[i].Spec.Containers = nil, nil, nil
		}
		for i := range state.Nodes {
			state.Nodes[i].ManagedFields, state.Nodes[i].Status.Conditions = nil, nil
		}
		text, err := yaml.Marshal(state)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
