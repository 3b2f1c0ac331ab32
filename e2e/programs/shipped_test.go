// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An installation without a registry needs every image that a manifest names.
func TestShippedIsWhatIsInstalled(t *testing.T) {
	root, err := Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "fleet", "manifests", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, filepath.Join(root, "fleet", "config", "manager", "deployment.yaml"))
	var want, got []string
	reference := regexp.MustCompile(`image: ko://github\.com/solonode/sno/(\S+)`)
	for _, file := range files {
		manifest, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range reference.FindAllStringSubmatch(string(manifest), -1) {
			want = append(want, match[1])
		}
	}
	for _, p := range Shipped() {
		got = append(got, p.Module+strings.TrimPrefix(p.Package, "."))
	}
	slices.Sort(want)
	slices.Sort(got)
	// config/all and config/current run the same program.
	want = slices.Compact(want)
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("(-manifests +images):\n%s", diff)
	}
}
