// SPDX-License-Identifier: Apache-2.0

package ignition

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/render/files"

	"github.com/solonode/sno/install/internal/fixture"
)

func fsMode(m int) fs.FileMode { return fs.FileMode(m) } //nolint:gosec // a mode of the test

const master = `{
  "ignition": {"version": "3.2.0", "timeouts": {"httpTotal": 30}, "proxy": {"httpProxy": "http://proxy.example.com"}, "security": {"tls": {"certificateAuthorities": [{"source": "data:,CA"}]}}},
  "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["ssh-ed25519 AAAA admin"]}, {"name": "ops", "uid": 1001}, {"name": "git", "homeDir": "/srv/git"}]},
  "storage": {
    "disks": [{"device": "/dev/sdb", "wipeTable": true}],
    "filesystems": [{"device": "/dev/sdb", "format": "xfs", "path": "/var/lib/data"}],
    "directories": [{"path": "/etc/kubernetes/conf", "mode": 448}],
    "links": [{"path": "/etc/localtime", "target": "/usr/share/zoneinfo/UTC", "hard": false}],
    "files": [
      {"path": "/etc/kubernetes/kubelet.conf", "mode": 420, "contents": {"source": "data:;base64,H4sIAAAAAAAA/w==", "compression": "gzip"}},
      {"path": "/etc/hostname", "overwrite": true, "mode": 420, "contents": {"source": "data:,master0"}},
      {"path": "/var/home/site/.ssh/authorized_keys", "mode": 384, "contents": {"source": "data:,"}},
      {"path": "/etc/systemd/system/own.service", "mode": 420, "contents": {"source": "data:,"}}
    ]
  },
  "systemd": {"units": [
    {"name": "kubelet.service", "enabled": true, "contents": "[Service]\nExecStart=/usr/bin/kubelet\n[Install]\nWantedBy=multi-user.target\n", "dropins": [{"name": "10-mco.conf", "contents": "[Unit]\n"}]},
    {"name": "zincati.service", "mask": true}
  ]}
}`

func additions() *Builder {
	var b Builder
	b.AddFile("sno-install", files.File{Path: "etc/kubernetes/manifests/etcd-pod.yaml", Mode: 0o600, Content: []byte(strings.Repeat("pod ", 200))})
	b.AddDir("sno-install", "etc/kubernetes/bootstrap-secrets", 0o700)
	b.AddDropIn("sno-install", "kubelet.service", "10-etcd-restore.conf", "[Unit]\nRequires=etcd-restore.service\n")
	b.AddUnit("sno-install", "post-reboot.service", service)
	return &b
}

// All of the config is unchanged in the result, and all of the additions are there, whichever was first (R-BIP-11).
func TestEnrich(t *testing.T) {
	later := strings.NewReplacer("3.2.0", "3.4.0", `"passwd": {`, `"kernelArguments": {"shouldExist": ["nosmt"]}, "passwd": {"groups": [{"name": "ops", "gid": 1001}], `,
		`"disks":`, `"raid": [{"name": "data", "level": "raid1", "devices": ["/dev/sdd", "/dev/sde"]}], "luks": [{"name": "secret", "device": "/dev/sdc", "discard": true}], "disks":`).Replace(master)
	for name, config := range map[string]string{"3.2.0": master, "3.4.0": later} {
		added := additions()
		fixture.NoError(t, added.AddConfig("node.ign", []byte(config)))
		for what, text := range map[string][]byte{
			name: fixture.Must(Enrich("master.ign", []byte(config), additions())), name + ", added": fixture.Must(added.Encode()),
		} {
			var got, want map[string]any
			fixture.NoError(t, errors.Join(json.Unmarshal(text, &got), json.Unmarshal([]byte(config), &want)))
			isAddition := func(v any) bool {
				m, _ := v.(map[string]any)
				return slices.Contains([]any{"/etc/kubernetes/manifests/etcd-pod.yaml", "/etc/kubernetes/bootstrap-secrets"}, m["path"]) ||
					slices.Contains([]any{"10-etcd-restore.conf", "post-reboot.service"}, m["name"])
			}
			if removed := remove(got, isAddition); removed != 4 {
				t.Errorf("%s: %d of 4 additions are there", what, removed)
			}
			fixture.Equal(t, what+": the config has changed", want, got)
		}
	}
}

func remove(value any, match func(any) bool) int {
	n := 0
	if m, ok := value.(map[string]any); ok {
		for key, field := range m {
			if list, ok := field.([]any); ok {
				var kept []any
				for _, item := range list {
					if match(item) {
						n++
						continue
					}
					kept = append(kept, item)
				}
				m[key] = kept
			}
			n += remove(field, match)
		}
	}
	if list, ok := value.([]any); ok {
		for _, item := range list {
			n += remove(item, match)
		}
	}
	return n
}

// In upstream's merge the original wins silently. Enrich and AddConfig report each conflict, with both sources (R-BIP-11,
// U-INS-9).
func TestEnrichConflicts(t *testing.T) {
	for name, test := range map[string]struct {
		add  func(*Builder)
		want string
	}{
		"file":                      {func(b *Builder) { b.AddFile("the snapshot", files.File{Path: "etc/hostname"}) }, "path /etc/hostname: defined by two sources: master.ign and the snapshot"},
		"file and folder":           {func(b *Builder) { b.AddFile("x", files.File{Path: "etc/kubernetes/conf"}) }, "path /etc/kubernetes/conf: "},
		"folder and link":           {func(b *Builder) { b.AddDir("x", "etc/localtime", 0o700) }, "path /etc/localtime: "},
		"below a file":              {func(b *Builder) { b.AddFile("x", files.File{Path: "etc/hostname/a"}) }, "master.ign has /etc/hostname, which is no folder, and x"},
		"below a link":              {func(b *Builder) { b.AddFile("x", files.File{Path: "etc/localtime/a"}) }, "master.ign has /etc/localtime, which is no folder, and x"},
		"above a folder":            {func(b *Builder) { b.AddFile("x", files.File{Path: "etc/kubernetes"}) }, "x has /etc/kubernetes, which is no folder"},
		"unit":                      {func(b *Builder) { b.AddUnit("x", "kubelet.service", service) }, "unit kubelet.service: defined by two sources: master.ign and x"},
		"masked unit":               {func(b *Builder) { b.AddUnit("x", "zincati.service", service) }, "unit zincati.service: "},
		"drop-in":                   {func(b *Builder) { b.AddDropIn("x", "kubelet.service", "10-mco.conf", "") }, "drop-in kubelet.service 10-mco.conf: "},
		"the node's SSH keys":       {func(b *Builder) { b.AddSSHKeys("sshKey", "core", []string{"k"}) }, "user core: defined by two sources: master.ign and sshKey"},
		"file of the keys":          {func(b *Builder) { b.AddFile("x", files.File{Path: "home/core/.ssh/authorized_keys.d/ignition"}) }, "master.ign has the SSH keys of user core, and x"},
		"keys of a file's user":     {func(b *Builder) { b.AddSSHKeys("sshKey", "site", []string{"k"}) }, "sshKey has the SSH keys of user site, and master.ign"},
		"keys at the real home":     {func(b *Builder) { b.AddDir("x", "var/home/ops/.ssh", 0o700) }, "master.ign has the SSH keys of user ops, and x"},
		"keys at a home elsewhere":  {func(b *Builder) { b.AddFile("x", files.File{Path: "srv/git/.ssh/authorized_keys"}) }, "master.ign has the SSH keys of user git, and x"},
		"file of a unit":            {func(b *Builder) { b.AddFile("x", files.File{Path: "etc/systemd/system/kubelet.service"}) }, "unit kubelet.service: defined by two sources: master.ign and x"},
		"file of a drop-in":         {func(b *Builder) { b.AddFile("x", files.File{Path: "etc/systemd/system/kubelet.service.d/10-mco.conf"}) }, "drop-in kubelet.service 10-mco.conf: defined by two sources: master.ign and x"},
		"unit of a file":            {func(b *Builder) { b.AddUnit("x", "own.service", service) }, "unit own.service: defined by two sources: master.ign and x"},
		"conflict of the additions": {func(b *Builder) { b.AddUnit("x", "post-reboot.service", service) }, "unit post-reboot.service: defined by two sources: sno-install and x"},
	} {
		t.Run(name, func(t *testing.T) {
			b := additions()
			test.add(b)
			_, err := Enrich("master.ign", []byte(master), b)
			fixture.Fails(t, "enriched", err, ErrConflict, test.want)
			fixture.NoError(t, b.AddConfig("master.ign", []byte(master)))
			_, err = b.Encode()
			fixture.Fails(t, "added", err, ErrConflict)
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		is   error
		want string
	}{
		"nothing":       {"", ErrInvalid, "master.ign: "},
		"no JSON":       {"{", ErrInvalid, "master.ign: "},
		"spec 2":        {`{"ignition":{"version":"2.2.0"}}`, ErrVersion, "master.ign: ignition.version: spec that is not supported: 2.2.0; use one from 3.0.0 to 3.6.0"},
		"spec 3.9":      {`{"ignition":{"version":"3.9.0"}}`, ErrVersion, "3.9.0"},
		"no version":    {`{"ignition":{}}`, ErrInvalid, "master.ign: "},
		"unknown key":   {`{"ignition":{"version":"3.2.0"},"storage":{"file":[]}}`, ErrInvalid, "file"},
		"later key":     {`{"ignition":{"version":"3.2.0"},"kernelArguments":{"shouldExist":["a"]}}`, ErrInvalid, "kernelArguments"},
		"invalid":       {`{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"etc"}]}}`, ErrInvalid, "path not absolute"},
		"two of a path": {`{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/a"},{"path":"/a"}]}}`, ErrInvalid, "duplicate"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("master.ign", []byte(test.text))
			fixture.Fails(t, "", err, test.is, test.want)
		})
	}
	for _, text := range []string{
		`{"ignition":{"version":"3.2.0","config":{"merge":[{"source":"https://example.com/more.ign"}]}}}`,
		`{"ignition":{"version":"3.2.0","config":{"replace":{"source":"https://example.com/more.ign"}}}}`,
	} {
		_, err := Enrich("master.ign", []byte(text), additions())
		fixture.Fails(t, text, err, ErrPointer)
		fixture.Fails(t, text, additions().AddConfig("node.ign", []byte(text)), ErrPointer, "node.ign: ignition.config: ")
	}
}

// The result of Enrich has all of both, or is an error.
func FuzzEnrich(f *testing.F) {
	f.Add([]byte(master))
	f.Add([]byte(`{"ignition":{"version":"3.4.0"},"kernelArguments":{"shouldNotExist":["quiet"]}}`))
	f.Add([]byte(`{"ignition":{"version":"3.0.0"},"storage":{"files":[{"path":"/a","append":[{"source":"data:,b"}]}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		before, err := Parse("original", text)
		if err != nil {
			return
		}
		enriched, err := Enrich("original", text, additions())
		if err != nil {
			return
		}
		after, err := Parse("enriched", enriched)
		if err != nil {
			t.Fatalf("%v in %s", err, enriched)
		}
		has := map[string]bool{}
		for _, n := range nodes(after.config) {
			has[n.Path] = true
		}
		for _, n := range append(nodes(before.config), nodes(additions().config)...) {
			if !has[n.Path] {
				t.Errorf("%s is lost", n.Path)
			}
		}
		if len(after.config.Systemd.Units) < len(before.config.Systemd.Units)+1 || len(after.config.Passwd.Users) != len(before.config.Passwd.Users) {
			t.Errorf("units %v, users %v", after.config.Systemd.Units, after.config.Passwd.Users)
		}
	})
}

// A drop-in is no claim of its unit, which may be in another config (R-BIP-11).
func TestDropInOfOtherUnit(t *testing.T) {
	const dropIn = `{"ignition":{"version":"3.2.0"},"systemd":{"units":[{"name":"kubelet.service","dropins":[{"name":"50-site.conf","contents":"[Unit]\n"}]}]}}`
	var b Builder
	b.AddDropIn("sno-install", "kubelet.service", "10-etcd-restore.conf", "[Unit]\nRequires=etcd-restore.service\n")
	fixture.NoError(t, b.AddConfig("node.ign", []byte(dropIn)))
	const other = `{"ignition":{"version":"3.2.0"},"systemd":{"units":[{"name":"kubelet.service","contents":"[Unit]","dropins":[{"name":"10-mco.conf","contents":"[Unit]"}]}]}}`
	text, err := Enrich("master.ign", []byte(other), &b)
	fixture.NoError(t, err)
	units := read(t, text).Systemd.Units
	var names []string
	for _, d := range units[0].Dropins {
		names = append(names, d.Name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"10-etcd-restore.conf", "10-mco.conf", "50-site.conf"}, names); diff != "" || len(units) != 1 || units[0].Contents == nil {
		t.Errorf("%d units, contents %v, drop-ins (-want +got):\n%s", len(units), units[0].Contents, diff)
	}
	var b2 Builder
	b2.AddUnit("sno-install", "kubelet.service", service)
	if text, err = Enrich("master.ign", []byte(dropIn), &b2); err != nil || !strings.Contains(string(text), "50-site.conf") {
		t.Errorf("a unit of which the master config has a drop-in: %s, %v", text, err)
	}
}
