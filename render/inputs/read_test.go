// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// goldenInput is the folder of the inputs that all packages of the module test with.
const goldenInput = "../testdata/input/"

var testNow = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// R-REN-3.
func TestReadGolden(t *testing.T) {
	t.Parallel()
	for folder, nodes := range map[string][]string{
		"one-node": {"master-0"}, "one-node-encrypted": {"master-0"}, "three-nodes": {"master-0", "master-1", "master-2"},
	} {
		cluster, err := Read(os.DirFS(goldenInput+folder), testNow)
		if err != nil {
			t.Errorf("%s:\n%v", folder, err)
			continue
		}
		if len(cluster.Warnings) > 0 {
			t.Errorf("%s has warnings:\n%v", folder, cluster.Warnings)
		}
		settings, err := cluster.Settings(Options{Profile: Kubernetes, Version: "v1.35.2"})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, node := range settings.Nodes {
			names = append(names, node.Name)
		}
		if diff := cmp.Diff(nodes, names); diff != "" {
			t.Errorf("%s: nodes (-want +got):\n%s", folder, diff)
		}
	}
}
