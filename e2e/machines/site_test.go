// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
)

// hostname is that of the installed machine. The name of its container differs.
const hostname = "edge-1"

// apiInternal is the name by which nodes reach the API server and the machine-config server.
const apiInternal = "api-int.edge.example.com"

// client is kubectl as administrator on an installed control-plane node.
const client = "kubectl --kubeconfig=/etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets/node-kubeconfigs/localhost.kubeconfig "

// site is a folder with the inputs of an installation, and the programs for it.
type site struct {
	folder string
	// network is the machine's in CIDR form, and gateway the address of this machine in it.
	network, gateway string
	// install and ignition are paths of programs, and program is the URL of sno-install for machines.
	install, ignition, program string
}

// prepareSite builds the programs, and empties the folder.
func (s *site) prepareSite(ctx context.Context, folder string) {
	s.folder = folder
	var err error
	s.install = suite.Must(programs.Build(ctx, programs.Install, GinkgoWriter))
	root := suite.Must(programs.Root(ctx))
	out, err := exec.CommandContext(ctx, filepath.Join(root, "tools/run"), "-path", "ignition").Output()
	Expect(err).NotTo(HaveOccurred(), "build Ignition")
	s.ignition = strings.TrimSpace(string(out))
	Expect(os.RemoveAll(s.folder)).To(Succeed())
}

func (s *site) path(name string) string { return filepath.Join(s.folder, name) }

func (s *site) read(name string) []byte {
	GinkgoHelper()
	return suite.Must(os.ReadFile(s.path(name)))
}

// write writes files of the folder. Those in a folder bin are executable.
func (s *site) write(files map[string]string) {
	GinkgoHelper()
	for name, text := range files {
		mode := os.FileMode(0o644)
		if strings.Contains(name, "/bin/") {
			mode = 0o755
		}
		Expect(os.MkdirAll(filepath.Dir(s.path(name)), 0o755)).To(Succeed())
		Expect(os.WriteFile(s.path(name), []byte(text), mode)).To(Succeed())
	}
}

// The engine may give the machine a network that has the default of serviceNetwork.
const installConfig = `apiVersion: v1
metadata: {name: edge}
baseDomain: example.com
controlPlane: {name: master, replicas: 1}
compute: [{name: worker, replicas: 0}]
networking:
  machineNetwork: [{cidr: %s}]
  serviceNetwork: [10.96.0.0/16]
platform: {none: {}}
bootstrapInPlace: {installationDisk: /dev/disk0}
pullSecret: '{"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNz"}}}'
`

// kubeletDropIn is needed by kubelets in containers: the disk of this machine is not the node's, and many machines for
// CI only have control groups of version 1, which kubelets refuse by default.
const kubeletDropIn = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
failSwapOn: false
evictionHard: {imagefs.available: "0%", nodefs.available: "0%", nodefs.inodesFree: "0%"}
imageGCHighThresholdPercent: 100
`

// lay writes the inputs of a person. The disk of the machine is a folder, so fakes replace lsblk and coreos-installer:
// the one prints a disk, and the other writes the config where the real one does, on a disk that already has the image.
func (s *site) lay() {
	s.write(map[string]string{
		"sno/install-config.yaml":                                   fmt.Sprintf(installConfig, s.network),
		"sno/manifests/site.yaml":                                   siteManifest,
		"extra/files/etc/hostname":                                  hostname + "\n",
		"extra/files/etc/kubernetes/kubelet.conf.d/10-machine.conf": kubeletDropIn,
		"live/files/etc/hostname":                                   hostname + "\n",
		"live/files/etc/kubernetes/kubelet.conf.d/10-machine.conf":  kubeletDropIn,
		"live/files/opt/machine/bin/lsblk": "#!/bin/sh\n" +
			`echo '{"blockdevices":[{"path":"/dev/disk0","type":"disk","size":137438953472,"ro":false,"mountpoints":[null],"fstype":null}]}'` + "\n",
		"live/files/opt/machine/bin/coreos-installer": fakeInstaller,
		"live/units/bootkube.service.d/10-machine.conf": "[Service]\nEnvironment=PATH=/opt/machine/bin:/usr/sbin:/usr/bin:/sbin:/bin\n" +
			"ExecStartPre=/bin/sh -c 'mknod /dev/disk0 b 259 99 || true'\n",
	})
}

const siteManifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: site, namespace: default}\ndata: {edge: \"1\"}\n"

// fakeInstaller makes the disk bootable only at its end, as the real installer does with the partition table.
const fakeInstaller = `#!/bin/sh
set -e
disk=/disk/boot
rm -f "$disk/bootable"
sync "$disk"
mkdir -p "$disk/ignition"
dd if="$3" of="$disk/ignition/config.ign" bs=64K oflag=dsync status=none
chmod 600 "$disk/ignition/config.ign"
: >"$disk/bootable"
sync "$disk"
`

// snoInstall runs a command of sno-install in the folder.
func (s *site) snoInstall(ctx context.Context, arguments ...string) {
	GinkgoHelper()
	command := exec.CommandContext(ctx, s.install, arguments...)
	command.Dir, command.Stdout, command.Stderr = s.folder, GinkgoWriter, GinkgoWriter
	Expect(command.Run()).To(Succeed(), "sno-install %v", arguments)
}

// medium returns a folder with Ignition, and a config if it is not empty.
func (s *site) medium(name, config string) string {
	files := map[string]string{s.ignition: "ignition"}
	if config != "" {
		files[s.path(config)] = "config.ign"
	}
	Expect(os.MkdirAll(s.path(name), 0o755)).To(Succeed())
	for from, to := range files {
		content := suite.Must(os.ReadFile(from))
		Expect(os.WriteFile(filepath.Join(s.path(name), to), content, 0o755)).To(Succeed())
	}
	return s.path(name)
}

// serve serves sno-install on the gateway, and the files of folder served, to the machine until the context ends.
func (s *site) serve(ctx context.Context) {
	var config net.ListenConfig
	listener := suite.Must(config.Listen(ctx, "tcp", net.JoinHostPort(s.gateway, "0")))
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/sno-install" {
			http.ServeFile(w, r, s.install)
			return
		}
		http.FileServer(http.Dir(s.path("served"))).ServeHTTP(w, r)
	})}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
	s.program = "http://" + listener.Addr().String() + "/sno-install"
}
