// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"bytes"
	"testing"

	"github.com/solonode/sno/e2e/demo"
	"github.com/solonode/sno/testcluster/scenario"
)

// TestDemo runs the main job on every scenario: the router must return to its place, in the right number, each time its
// pod is deleted.
func TestDemo(t *testing.T) {
	t.Parallel()
	for _, s := range scenario.All() {
		if testing.Short() && s.Name != "compact" { // make run is on a single node
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := demo.Run(t.Context(), demo.Options{Scenario: s.Name, Once: true, Out: &out}); err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
		})
	}
}
