// SPDX-License-Identifier: Apache-2.0

package kubetests

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/solonode/sno/testcluster/assets"
)

// unavailable reports whether an image cannot be pulled anywhere, which is what its test needs.
func unavailable(image string) bool {
	return strings.HasPrefix(image, "invalid.") || strings.HasSuffix(image, ":nonexistent")
}

// imagesOf are the images that e2e.test names and a node of these clusters has.
type imagesOf struct{ agnhost, pause []string }

func listImages(ctx context.Context, suite assets.Assets) (imagesOf, error) {
	out, err := exec.CommandContext(ctx, suite.Program("e2e.test"), "--list-images").Output()
	if err != nil {
		return imagesOf{}, fmt.Errorf("list the images of e2e.test: %w", err)
	}
	return sortImages(strings.Fields(string(out)))
}

func sortImages(names []string) (imagesOf, error) {
	var all imagesOf
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		switch {
		case strings.HasPrefix(name, "registry.k8s.io/e2e-test-images/agnhost:"):
			all.agnhost = append(all.agnhost, name)
		case strings.HasPrefix(name, "registry.k8s.io/pause:"):
			all.pause = append(all.pause, name)
		}
	}
	if len(all.agnhost) == 0 || len(all.pause) == 0 {
		return all, fmt.Errorf("%w: e2e.test names the images %q, want agnhost and pause", ErrTests, names)
	}
	return all, nil
}

// pullPattern matches events of kubelets, which the report of a failed test has.
var pullPattern = regexp.MustCompile(`(?:Failed to pull|Back-off pulling) image \\*"([^"\\]+)`)

// missingImage returns the name of the image, without its registry and tag, that could not be pulled in a test, or
// nothing.
func missingImage(text string) string {
	for _, match := range pullPattern.FindAllStringSubmatch(text, -1) {
		if name, _, _ := strings.Cut(match[1][strings.LastIndex(match[1], "/")+1:], ":"); !unavailable(match[1]) {
			return name
		}
	}
	return ""
}
