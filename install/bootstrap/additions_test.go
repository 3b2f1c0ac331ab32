// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coreos/ignition/v2/config/v3_6"
	"github.com/coreos/ignition/v2/config/v3_6/types"

	"github.com/solonode/sno/install/gather"
	"github.com/solonode/sno/install/ignition"
	"github.com/solonode/sno/install/ignition/ignitiontest"
	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
	"github.com/solonode/sno/install/postreboot"
)

func (m *machine) beforeEnrich(t *testing.T) *live {
	t.Helper()
	m.rendered(t)
	fixture.Put(t, m.root, node.LiveSnapshot, "a snapshot")
	fixture.Put(t, m.root, node.LiveLogBundle, "a bundle")
	fixture.Put(t, m.root, node.OriginalIgnition, original)
	return newLive(m.Options)
}

// enriched returns the config of the installed node, and its files and folders.
func enriched(t *testing.T, l *live) (types.Config, map[string]ignitiontest.Entry) {
	t.Helper()
	fixture.NoError(t, l.enrich(t.Context(), nil))
	text := fixture.Must(os.ReadFile(l.Path(node.MasterIgnition)))
	entries, _ := ignitiontest.Read(t, text)
	c, r, err := v3_6.ParseCompatibleVersion(text)
	if err != nil || len(r.Entries) > 0 {
		t.Fatalf("%v, %v", r, err)
	}
	return c, entries
}

// The node gets all that it needs, and only root reads it (R-BIP-15, U-INS-8, U-INS-12).
func TestAdditions(t *testing.T) {
	m := newMachine(t)
	l := m.beforeEnrich(t)
	program := fixture.Must(os.ReadFile(m.Program))
	content := func(name string) string {
		return string(fixture.Must(os.ReadFile(filepath.Join(m.root, name))))
	}
	fixture.Put(t, m.root, node.LiveStatus, "{}")
	rendered := node.Rendered + "/files/"
	_, entries := enriched(t, l)
	for name, want := range map[string]ignitiontest.Entry{
		node.BootstrapSettings:              {Mode: 0o600, Content: content(node.LiveSettings)},
		node.BootstrapKubeconfig:            {Mode: 0o600, Content: content(node.Rendered + "/auth/kubeconfig-localhost")},
		node.KubeletBootstrap:               {Mode: 0o600, Content: content(node.Rendered + "/auth/kubeconfig-kubelet")},
		node.Snapshot:                       {Mode: 0o600, Content: "a snapshot"},
		node.LogBundle:                      {Mode: 0o600, Content: "a bundle"},
		node.BootstrapStatus:                {Mode: 0o600, Content: "{}"},
		node.Program:                        {Mode: 0o755, Content: string(program)},
		"etc/site.conf":                     {Mode: 0o600, Content: "site"},
		"etc/kubernetes/kubelet.env":        {Mode: 0o644, Content: "KUBELET_NODE_ARGS=--hostname-override=master0 --node-ip=192.0.2.10\n"},
		node.ManifestDir + "/etcd-pod.yaml": {Mode: 0o600, Content: content(rendered + node.ManifestDir + "/etcd-pod.yaml")},
		node.ResourceDir + "/kube-apiserver-pod-1/secrets/etcd-client/tls.key": {Mode: 0o600, Content: content(rendered + node.ResourceDir + "/kube-apiserver-pod-1/secrets/etcd-client/tls.key")},
		node.GatherScript:        {Mode: 0o755, Content: gather.Script()},
		node.MastersGatherScript: {Mode: 0o755, Content: gather.MastersScript()},
	} {
		fixture.Equal(t, name, want, entries["/"+name])
	}
	if got := entries["/"+node.BootstrapSettings].Content; !strings.Contains(got, "name: master0") {
		t.Errorf("the settings do not have the node's name:\n%s", got)
	}
	for name, e := range entries {
		for dir := filepath.Dir(name); strings.HasPrefix(dir, "/"+node.ResourceDir); dir = filepath.Dir(dir) {
			if entries[dir].Mode != fs.ModeDir|0o700 {
				t.Errorf("folder %s is not private", dir)
			}
		}
		if e.Mode&0o077 != 0 && strings.HasPrefix(name, "/etc/kubernetes/") && name != "/etc/kubernetes/kubelet.env" {
			t.Errorf("%s has mode %o", name, e.Mode)
		}
	}
	for _, dir := range []string{node.BootstrapConfigs, node.BootstrapSecrets, node.SnapshotDir, node.ManifestDir} {
		if entries["/"+dir].Mode != fs.ModeDir|0o700 {
			t.Errorf("folder %s is not private", dir)
		}
	}
}

// etcd is restored before the kubelet starts, and the kubelet does not start otherwise (R-BIP-10, U-INS-7).
func TestUnits(t *testing.T) {
	m := newMachine(t)
	l := m.beforeEnrich(t)
	s := fixture.Must(l.Settings())
	units := map[string]string{}
	c, _ := enriched(t, l)
	for _, u := range c.Systemd.Units {
		if u.Contents != nil {
			units[u.Name] = *u.Contents
		}
		for _, d := range u.Dropins {
			units[u.Name+" "+d.Name] = *d.Contents
		}
	}
	want := map[string]string{
		"etcd-restore.service": "[Unit]\nDescription=Restore etcd from the snapshot of the bootstrap phase\nBefore=kubelet.service\nConditionPathExists=!/var/lib/etcd/member\n\n" +
			"[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/local/bin/sno-install restore-etcd\n",
		"kubelet.service 10-etcd-restore.conf": "[Unit]\nRequires=etcd-restore.service\nAfter=etcd-restore.service\n",
		"post-reboot.service":                  postreboot.Unit(*s),
	}
	fixture.Equal(t, "", want, units)
	m.edit(t, func(s *node.Settings) { s.ProgramInImage = true })
	c, entries := enriched(t, l)
	if _, there := entries["/"+node.Program]; there {
		t.Error("the program is written although the image has it")
	}
	for _, u := range c.Systemd.Units {
		if u.Name == node.RestoreUnit && !strings.Contains(*u.Contents, "\nExecStart=/usr/bin/sno-install restore-etcd\n") {
			t.Errorf("not the image's program:\n%s", *u.Contents)
		}
	}
}

// User additions are merged with those of sno-install. For a conflict the error names both sources, and no config is
// written.
func TestAddedAtCreation(t *testing.T) {
	m := newMachine(t)
	l := m.beforeEnrich(t)
	config := func(sections string) string { return `{"ignition":{"version":"3.2.0"},` + sections + `}` }
	fixture.Put(t, m.root, node.NodeAdditions, config(`"systemd":{"units":[{"name":"kubelet.service","dropins":[{"name":"50-site.conf","contents":"[Unit]\n"}]}]}`))
	fixture.Put(t, m.root, node.UserMasterIgnition, config(`"systemd":{"units":[{"name":"kubelet.service","contents":"[Unit]\n"}]}`))
	c, _ := enriched(t, l)
	for _, u := range c.Systemd.Units {
		if u.Name == "kubelet.service" && (len(u.Dropins) != 2 || u.Contents == nil) {
			t.Errorf("kubelet.service: %+v", u)
		}
	}
	fixture.NoError(t, os.Remove(l.Path(node.MasterIgnition)))
	for name, test := range map[string]struct{ config, want string }{
		"a unit of the master config": {config(`"systemd":{"units":[{"name":"kubelet.service","contents":"[Unit]\n"}]}`), "unit kubelet.service: defined by two sources: /" + node.UserMasterIgnition + " and the user's additions"},
		"a static pod":                {config(`"storage":{"files":[{"path":"/` + node.ManifestDir + `/etcd-pod.yaml"}]}`), "etcd-pod.yaml: defined by two sources: the static pods and the user's additions"},
		"the snapshot":                {config(`"storage":{"links":[{"path":"/` + node.Snapshot + `","target":"/var/a"}]}`), "etcd-snapshot.db: defined by two sources: sno-install and the user's additions"},
		"a pointer":                   {`{"ignition":{"version":"3.2.0","config":{"merge":[{"source":"https://example.com/a"}]}}}`, "the user's additions: ignition.config: "},
	} {
		fixture.Put(t, m.root, node.NodeAdditions, test.config)
		err := l.enrich(t.Context(), nil)
		if !errors.Is(err, ignition.ErrConflict) && !errors.Is(err, ignition.ErrPointer) || !errors.Is(err, phase.ErrInput) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
		fixture.Absent(t, l.Path(node.MasterIgnition))
	}
	fixture.Put(t, m.root, node.NodeAdditions, "\n")
	fixture.Put(t, m.root, node.UserMasterIgnition, config(`"storage":{"files":[{"path":"/`+node.BootstrapSettings+`"}]}`))
	fixture.Fails(t, "a path of sno-install", l.enrich(t.Context(), nil), ignition.ErrConflict, phase.ErrInput, "given-master.ign and sno-install")
	fixture.Put(t, m.root, node.UserMasterIgnition, original)
	if _, entries := enriched(t, l); entries["/etc/site.conf"].Mode != 0 {
		t.Error("nothing was added at creation")
	}
}

// A disk is written again only if it, or the config, differs from the record of the last time (R-BIP-7).
func TestIsInstalled(t *testing.T) {
	m := newMachine(t)
	l := newLive(m.Options)
	is := func(want bool, what string) {
		t.Helper()
		if got, err := l.isInstalled(t.Context()); got != want || err != nil {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
	is(false, "nothing")
	fixture.Put(t, m.root, node.MasterIgnition, original)
	is(false, "a config")
	fixture.Put(t, filepath.Dir(m.fail), filepath.Base(m.fail), "")
	fixture.Fails(t, "", l.writeDisk(t.Context(), nil), errProgram)
	is(false, "an installer that has failed")
	fixture.NoError(t, os.Remove(m.fail))
	fixture.NoError(t, l.writeDisk(t.Context(), nil))
	is(true, "written")
	fixture.Put(t, m.root, node.MasterIgnition, original+"\n")
	is(false, "another config")
	fixture.Put(t, m.root, node.MasterIgnition, original)
	is(true, "the same config")
	m.edit(t, func(s *node.Settings) { s.InstallationDisk = "/dev/disk/by-id/wwn-0x2" })
	is(false, "another disk")
	fixture.Put(t, m.root, node.InstalledRecord, `{"disk":`)
	is(false, "a truncated record")
}
