// SPDX-License-Identifier: Apache-2.0

package installing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/solonode/sno/e2e/programs"
)

// hostname is that of the installed machine. The name of its container differs.
const hostname = "edge-1"

// apiInternal is the name by which nodes reach the API server and the machine-config server.
const apiInternal = "api-int.edge.example.com"

// client is kubectl as administrator on a control-plane node.
const client = "kubectl --kubeconfig=/etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets/node-kubeconfigs/localhost.kubeconfig "

// site is a folder with the inputs of an installation, and the programs for it.
type site struct {
	folder string
	// network is the machine's in CIDR form, and gateway the address of this machine in it.
	network, gateway string

	install, ignition string
	progress          io.Writer
}

var errCommand = errors.New("a command of the installation failed")

func newSite(ctx context.Context, folder string, progress io.Writer) (*site, error) {
	s := &site{folder: folder, progress: progress}
	var err error
	if s.install, err = programs.Build(ctx, programs.Install, progress); err != nil {
		return nil, err //nolint:wrapcheck // names the object
	}
	root, err := programs.Root(ctx)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the object
	}
	out, err := exec.CommandContext(ctx, filepath.Join(root, "tools/run"), "-path", "ignition").Output()
	if err != nil {
		return nil, fmt.Errorf("%w: build Ignition: %w", errCommand, err)
	}
	s.ignition = strings.TrimSpace(string(out))
	return s, nil
}

func (s *site) clear() error {
	if err := os.RemoveAll(s.folder); err != nil {
		return fmt.Errorf("clear the folder of the installation: %w", err)
	}
	return nil
}

func (s *site) path(name string) string { return filepath.Join(s.folder, name) }

// write writes files of the folder. Those in a folder bin are executable.
func (s *site) write(files map[string]string) error {
	for name, text := range files {
		mode := os.FileMode(0o644)
		if strings.Contains(name, "/bin/") {
			mode = 0o755
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(s.path(name)), 0o755), os.WriteFile(s.path(name), []byte(text), mode)); err != nil {
			return fmt.Errorf("write the folder of the installation: %w", err)
		}
	}
	return nil
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

// kubeletDropIn is needed by kubelets in containers.
const kubeletDropIn = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
failSwapOn: false
evictionHard: {imagefs.available: "0%", nodefs.available: "0%", nodefs.inodesFree: "0%"}
imageGCHighThresholdPercent: 100
`

// lay writes the inputs of a person. The disk of the machine is a folder, so fakes replace lsblk and coreos-installer:
// the one prints a disk, and the other writes the config where the real one does, on a disk that already has the image.
func (s *site) lay() error {
	return s.write(map[string]string{
		"sno/install-config.yaml":                                   fmt.Sprintf(installConfig, s.network),
		"sno/manifests/site.yaml":                                   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: site, namespace: default}\ndata: {edge: \"1\"}\n",
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

func (s *site) run(ctx context.Context, arguments ...string) error {
	c := exec.CommandContext(ctx, s.install, arguments...)
	c.Dir, c.Stdout, c.Stderr = s.folder, s.progress, s.progress
	if err := c.Run(); err != nil {
		return fmt.Errorf("%w: sno-install %v: %w", errCommand, arguments, err)
	}
	return nil
}

func (s *site) medium(name, config string) (string, error) {
	dir := s.path(name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make a medium: %w", err)
	}
	copies := map[string]string{s.ignition: "ignition"}
	if config != "" {
		copies[s.path(config)] = "config.ign"
	}
	for from, to := range copies {
		content, err := os.ReadFile(from)
		if err != nil {
			return "", fmt.Errorf("make a medium: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), content, 0o755); err != nil {
			return "", fmt.Errorf("make a medium: %w", err)
		}
	}
	return dir, nil
}

// serve serves sno-install to the machine until the context ends, and returns its URL.
func (s *site) serve(ctx context.Context) (string, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(s.gateway, "0"))
	if err != nil {
		return "", fmt.Errorf("serve sno-install: %w", err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, s.install) })}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
	return "http://" + listener.Addr().String() + "/sno-install", nil
}
