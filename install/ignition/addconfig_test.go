// SPDX-License-Identifier: Apache-2.0

package ignition

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/install/internal/fixture"
)

// The result has all of the config that is added, unchanged, and all of the earlier additions.
func TestAddConfig(t *testing.T) {
	added := strings.Replace(master, "3.2.0", "3.4.0", 1)
	added = strings.Replace(added, `"passwd": {`, `"kernelArguments": {"shouldExist": ["nosmt"]}, "passwd": {"groups": [{"name": "ops", "gid": 1001}], `, 1)
	added = strings.Replace(added, `"disks":`, `"raid": [{"name": "data", "level": "raid1", "devices": ["/dev/sdd", "/dev/sde"]}],
    "luks": [{"name": "secret", "device": "/dev/sdc", "discard": true}], "disks":`, 1)
	b := additions()
	fixture.NoError(t, b.AddConfig("node.ign", []byte(added)))
	text := fixture.Must(b.Encode())
	var got, want map[string]any
	fixture.NoError(t, errors.Join(json.Unmarshal(text, &got), json.Unmarshal([]byte(added), &want)))
	isAddition := func(v any) bool {
		m, _ := v.(map[string]any)
		path, _ := m["path"].(string)
		name, _ := m["name"].(string)
		return strings.HasPrefix(path, "/etc/kubernetes/manifests/") || path == "/etc/kubernetes/bootstrap-secrets" || name == "10-etcd-restore.conf" || name == "post-reboot.service"
	}
	if removed := remove(got, isAddition); removed != 4 {
		t.Errorf("%d of 4 earlier additions are there", removed)
	}
	fixture.Equal(t, "", want, got)
}

// A conflict is an error, and a config is added completely or not at all. TestEnrichConflicts has all conflicts.
func TestAddConfigRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		config string
		is     error
		want   string
	}{
		"file":           {`"storage":{"files":[{"path":"/etc/kubernetes/manifests/etcd-pod.yaml"}]}`, ErrConflict, "path /etc/kubernetes/manifests/etcd-pod.yaml: defined by two sources: sno-install and node.ign"},
		"pointer":        {`"ignition":{"config":{"merge":[{"source":"https://example.com/more.ign"}]},"version":"3.2.0"}`, ErrPointer, "node.ign: ignition.config: "},
		"invalid config": {`"storage":[]`, ErrInvalid, "node.ign: "},
		"file of a key":  {`"storage":{"files":[{"path":"/var/home/core/.ssh/authorized_keys.d/more"}]}`, ErrConflict, "sshKey has the SSH keys of user core, and node.ign"},
	} {
		t.Run(name, func(t *testing.T) {
			b := additions()
			b.AddSSHKeys("sshKey", "core", []string{"ssh-ed25519 A"})
			text := "{" + test.config + "}"
			if !strings.Contains(text, `"ignition"`) {
				text = `{"ignition":{"version":"3.2.0"},` + test.config + "}"
			}
			err := b.AddConfig("node.ign", []byte(text))
			if err == nil {
				_, err = b.Encode()
			}
			if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// A drop-in is no claim of its unit, which may be in another config (R-BIP-11).
func TestDropInOfOtherUnit(t *testing.T) {
	const dropIn = `{"ignition":{"version":"3.2.0"},"systemd":{"units":[{"name":"kubelet.service","dropins":[{"name":"50-site.conf","contents":"[Unit]\n"}]}]}}`
	var b Builder
	b.AddDropIn("sno-install", "kubelet.service", "10-etcd-restore.conf", "[Unit]\nRequires=etcd-restore.service\n")
	fixture.NoError(t, b.AddConfig("node.ign", []byte(dropIn)))
	const other = `{"ignition":{"version":"3.2.0"},"systemd":{"units":[{"name":"kubelet.service","contents":"[Unit]","dropins":[{"name":"10-mco.conf","contents":"[Unit]"}]}]}}`
	text, err := Enrich("master.ign", []byte(other), &b)
	if err != nil {
		t.Fatal(err)
	}
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
