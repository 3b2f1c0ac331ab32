// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/solonode/sno/install/node"
)

// image checks that the machine's image has a kubelet, the container runtime and the CNI plugins of the pod network:
// nothing installs them later.
func (c *checker) image(context.Context) []Finding {
	const advice = "use an image that has it (docs/all-in-one.md, The image)"
	r := c.Runtime
	var found []Finding
	need := func(dirs []string, advice, what string, names ...string) {
		if !slices.ContainsFunc(names, func(name string) bool { return c.has(dirs, name) }) {
			found = append(found, failed(advice, "the image has no %s in /%s", what, strings.Join(dirs, ", /")))
		}
	}
	kubelet := filepath.Dir(node.Kubelet)
	need([]string{kubelet}, advice, "program kubelet", filepath.Base(node.Kubelet))
	for _, name := range r.Programs {
		need(node.ProgramDirs, advice+", or create the config with another --runtime", "program "+name+" of "+r.Name, name)
	}
	need(node.ProgramDirs, advice, "program "+strings.Join(node.OCIRuntimes, " or "), node.OCIRuntimes...)
	need(node.UnitDirs, advice, "unit "+r.Unit, r.Unit)
	for _, name := range node.CNIPlugins {
		need(node.CNIDirs, advice, "CNI plugin "+name, name)
	}
	if len(found) == 0 {
		found = append(found, ok("the image has kubelet, %s and CNI plugins", r.Name))
	}
	return found
}

func (c *checker) has(dirs []string, name string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		// Links of an image may be absolute, so they are not followed below Root.
		info, err := os.Lstat(filepath.Join(c.Root, dir, name))
		return err == nil && !info.IsDir()
	})
}
