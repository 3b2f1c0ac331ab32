// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/inputs"

	"github.com/solonode/sno/install/controlplane"
	"github.com/solonode/sno/install/gather"
	"github.com/solonode/sno/install/ignition"
	"github.com/solonode/sno/install/kubelet"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
	"github.com/solonode/sno/install/postreboot"
)

const (
	own  = "sno-install"
	pods = "the static pods"
)

// additions returns the additions to the master config (R-BIP-15, U-INS-8). Only root reads keys: files have mode 0600
// and folders 0700, unlike upstream (U-INS-12).
func (l *live) additions(s *node.Settings) (*ignition.Builder, error) {
	b := &ignition.Builder{}
	list, err := l.StaticPodFiles()
	if err != nil {
		return nil, err
	}
	// Those of other programs, and two that are added below.
	dirs := map[string]bool{"etc/kubernetes": true, "etc": true, ".": true, node.BootstrapConfigs: true, node.BootstrapSecrets: true}
	for _, f := range list {
		for dir := path.Dir(f.Path); !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
			b.AddDir(pods, dir, 0o700)
		}
		b.AddFile(pods, f)
	}
	settings, err := s.Encode()
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the settings
	}
	for _, dir := range []string{node.BootstrapConfigs, node.BootstrapSecrets, node.SnapshotDir} {
		b.AddDir(own, dir, 0o700)
	}
	b.AddFile(own, files.File{Path: node.BootstrapSettings, Mode: 0o600, Content: settings})
	copies := []struct{ from, to string }{
		{node.Rendered + "/" + controlplane.Kubeconfig, node.BootstrapKubeconfig}, {node.LiveSnapshot, node.Snapshot}, {node.LiveLogBundle, node.LogBundle},
	}
	if s.Profile == string(inputs.Kubernetes) {
		// In profile openshift the machine-config server adds it.
		copies = append(copies, struct{ from, to string }{node.Rendered + "/" + controlplane.KubeletKubeconfig, node.KubeletBootstrap})
		b.AddFile(own, kubelet.Environment(s))
	}
	for _, c := range copies {
		content, err := os.ReadFile(l.Path(c.from))
		if err != nil {
			return nil, fmt.Errorf("enrich the master config: %w", err)
		}
		b.AddFile(own, files.File{Path: c.to, Mode: 0o600, Content: content})
	}
	if content, err := os.ReadFile(l.Path(node.LiveStatus)); err == nil { // it may not have been writable
		b.AddFile(own, files.File{Path: node.BootstrapStatus, Mode: 0o600, Content: content})
	}
	if !s.ProgramInImage {
		content, err := os.ReadFile(l.o.Program)
		if err != nil {
			return nil, fmt.Errorf("enrich the master config: %w", err)
		}
		b.AddFile(own, files.File{Path: node.Program, Mode: 0o755, Content: content})
	}
	b.AddFile(own, files.File{Path: node.GatherScript, Mode: 0o755, Content: []byte(gather.Script())})
	b.AddFile(own, files.File{Path: node.MastersGatherScript, Mode: 0o755, Content: []byte(gather.MastersScript())})
	b.AddUnit(own, node.RestoreUnit, fmt.Sprintf(restoreUnit, s.Executable()))
	b.AddDropIn(own, "kubelet.service", node.RestoreDropIn, restoreDropIn)
	b.AddUnit(own, node.PostRebootUnit, postreboot.Unit(*s))
	more, err := os.ReadFile(l.Path(node.NodeAdditions))
	if err != nil {
		return nil, fmt.Errorf("enrich the master config: %w", err)
	}
	if len(bytes.TrimSpace(more)) == 0 {
		return b, nil
	}
	if err := b.AddConfig("the user's additions", more); err != nil {
		return nil, fmt.Errorf("%w: %w", err, phase.ErrInput)
	}
	return b, nil
}

// restoreUnit fails if etcd would start without data.
var restoreUnit = strings.TrimLeft(`
[Unit]
Description=Restore etcd from the snapshot of the bootstrap phase
Before=kubelet.service
ConditionPathExists=!/`+node.EtcdData+`/member

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/%s restore-etcd
`, "\n")

// restoreDropIn keeps the kubelet from starting etcd before restoreUnit has succeeded (U-INS-7).
const restoreDropIn = "[Unit]\nRequires=" + node.RestoreUnit + "\nAfter=" + node.RestoreUnit + "\n"
