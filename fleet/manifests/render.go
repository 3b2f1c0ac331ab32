// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The overlays of config/, built by kustomize: `go test ./cli -update` writes them.
//
//go:embed *.yaml
var files embed.FS

// Names of one process with several modules.
const (
	All     = "all"
	Current = "current" // those that have something to do on OpenShift 4.8 and later
)

// Placeholder is replaced by the name of the module in an image.
const Placeholder = "{module}"

var koImage = regexp.MustCompile(`image: ko://\S+`)

// ImageOf returns the image of a module's controller.
func ImageOf(module, image string) string { return strings.ReplaceAll(image, Placeholder, module) }

// Render returns manifests with a Deployment for each name, that of a module, [All] or [Current]. Without an image they
// have ko references to programs of the repository. policies are the ValidatingAdmissionPolicies of the accounts, which
// an API server before Kubernetes 1.30 does not serve.
func Render(image string, policies bool, names ...string) (string, error) {
	var rendered []string
	for _, name := range names {
		content, err := files.ReadFile(name + ".yaml")
		if err != nil {
			return "", fmt.Errorf("no manifests of module %q: %w", name, err)
		}
		text := string(content)
		if !policies {
			isPolicy := func(document string) bool { return strings.Contains(document, "\nkind: ValidatingAdmissionPolicy") }
			text = strings.Join(slices.DeleteFunc(strings.Split(text, "\n---\n"), isPolicy), "\n---\n")
		}
		if image != "" {
			text = koImage.ReplaceAllLiteralString(text, "image: "+ImageOf(name, image))
		}
		rendered = append(rendered, text)
	}
	return strings.Join(rendered, "---\n"), nil
}
