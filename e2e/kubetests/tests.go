// SPDX-License-Identifier: Apache-2.0

package kubetests

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/testcluster/assets"
)

// Test is a conformance test of Kubernetes.
type Test struct {
	// Name is the short name, and Codename the one in reports.
	Name     string `json:"testname"`
	Codename string `json:"codename"`
	// File is its source file in k8s.io/kubernetes.
	File string `json:"file"`
}

// ErrTests is returned for an invalid list of tests.
var ErrTests = errors.New("invalid list of Kubernetes' conformance tests")

// All returns the conformance tests of the Kubernetes version of tools/kubetests.
func All(ctx context.Context) ([]Test, error) {
	folder, err := assets.SuiteFolder(ctx)
	if err != nil {
		return nil, err //nolint:wrapcheck // complete
	}
	text, err := os.ReadFile(filepath.Join(folder, "test", "conformance", "testdata", "conformance.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read the list of conformance tests: %w", err)
	}
	return parseTests(text)
}

func parseTests(text []byte) ([]Test, error) {
	var all []Test
	if err := yaml.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTests, err)
	}
	seen := map[string]bool{}
	for _, test := range all {
		if test.Codename == "" || seen[test.Codename] {
			return nil, fmt.Errorf("%w: the codename %q of %s is empty or repeated", ErrTests, test.Codename, test.File)
		}
		seen[test.Codename] = true
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrTests)
	}
	return all, nil
}

// focus returns the regular expression that selects exactly these tests. Ginkgo matches it with the name of the suite
// and that of the test.
func focus(tests []Test) string {
	var names []string
	for _, test := range tests {
		names = append(names, regexp.QuoteMeta(test.Codename))
	}
	return "^Kubernetes e2e suite (" + strings.Join(names, "|") + ")$"
}
