// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/node"
)

// Each thing that an image lacks is named, for both runtimes.
func TestImage(t *testing.T) {
	for name, test := range map[string]struct {
		runtime node.Runtime
		files   []string
		lacks   map[string]string // a file of the image, and the finding without it
	}{
		"CoreOS": {node.CRIO, []string{
			"usr/bin/kubelet", "usr/bin/crio", "usr/libexec/crio/conmon", "usr/bin/pinns", "usr/bin/crun", "usr/lib/systemd/system/crio.service",
			"usr/libexec/cni/host-local", "usr/libexec/cni/loopback", "usr/libexec/cni/portmap", "usr/libexec/cni/ptp",
		}, map[string]string{
			"usr/bin/kubelet":                     "program kubelet in /usr/bin",
			"usr/libexec/crio/conmon":             "program conmon of crio in ...",
			"usr/bin/crun":                        "program crun or runc in ...",
			"usr/lib/systemd/system/crio.service": "unit crio.service in ...",
			"usr/libexec/cni/ptp":                 "CNI plugin ptp in /opt/cni/bin, /usr/libexec/cni, /usr/lib/cni",
		}},
		"Debian": {node.Containerd, []string{
			"usr/bin/kubelet", "usr/bin/containerd", "usr/bin/containerd-shim-runc-v2", "usr/sbin/runc", "lib/systemd/system/containerd.service",
			"opt/cni/bin/host-local", "opt/cni/bin/loopback", "opt/cni/bin/portmap", "opt/cni/bin/ptp",
		}, map[string]string{
			"usr/bin/containerd": "program containerd of containerd in ...", "opt/cni/bin/portmap": "CNI plugin portmap in ...",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for _, file := range test.files {
				fixture.Put(t, root, file, "")
			}
			in := Input{Host: true, Checks: []string{Image}, Runtime: &test.runtime, Root: root}
			same(t, []string{"ok image: the image has kubelet, " + test.runtime.Name + " and CNI plugins"}, Check(t.Context(), in))
			for file, want := range test.lacks {
				fixture.NoError(t, os.Remove(filepath.Join(root, file)))
				same(t, []string{"failed image: the image has no " + want}, Check(t.Context(), in))
				fixture.Put(t, root, file, "")
			}
			// A folder of that name is no program.
			fixture.NoError(t, os.Remove(filepath.Join(root, node.Kubelet)))
			fixture.NoError(t, os.Mkdir(filepath.Join(root, node.Kubelet), 0o700))
			same(t, []string{"failed image: the image has no program kubelet in /usr/bin"}, Check(t.Context(), in))
		})
	}
}
