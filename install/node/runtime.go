// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"slices"
	"strings"
)

// Runtime is a container runtime of a node's image.
type Runtime struct {
	Name string
	// Endpoint is where the kubelet finds it.
	Endpoint string
	Unit     string
	// Programs are what it consists of. It also needs one of OCIRuntimes.
	Programs []string
}

// The runtimes. The first is that of CoreOS.
var (
	CRIO       = Runtime{Name: "crio", Endpoint: "unix:///var/run/crio/crio.sock", Unit: "crio.service", Programs: []string{"crio", "conmon", "pinns"}}
	Containerd = Runtime{Name: "containerd", Endpoint: "unix:///run/containerd/containerd.sock", Unit: "containerd.service",
		Programs: []string{"containerd", "containerd-shim-runc-v2"}}
	Runtimes = []Runtime{CRIO, Containerd}
)

// OCIRuntimes are programs that start a container. A runtime needs one of them.
var OCIRuntimes = []string{"crun", "runc"}

// CNIPlugins are the programs of kubelet.NetworkFile.
var CNIPlugins = []string{"host-local", "loopback", "portmap", "ptp"}

// Programs of a node's image, relative to the root, and where it has the others.
var (
	Kubelet     = "usr/bin/kubelet"
	ProgramDirs = []string{"usr/bin", "usr/sbin", "usr/local/bin", "usr/local/sbin", "usr/libexec/crio"}
	CNIDirs     = []string{"opt/cni/bin", "usr/libexec/cni", "usr/lib/cni"}
	UnitDirs    = []string{UnitDir, "usr/lib/systemd/system", "usr/local/lib/systemd/system", "lib/systemd/system"}
)

// ContainerRuntime returns the runtime of a machine whose image brings it.
func (s *Settings) ContainerRuntime() (Runtime, error) {
	if s.Runtime == "" {
		return Containerd, nil
	}
	i := slices.IndexFunc(Runtimes, func(r Runtime) bool { return r.Name == s.Runtime })
	if i < 0 {
		return Runtime{}, fmt.Errorf("%w: runtime %q: use %s", ErrSettings, s.Runtime, RuntimeNames())
	}
	return Runtimes[i], nil
}

// RuntimeNames returns the names of the runtimes for a sentence.
func RuntimeNames() string {
	var names []string
	for _, r := range Runtimes {
		names = append(names, r.Name)
	}
	return strings.Join(names, " or ")
}
