// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/solonode/sno/install/internal/fixture"
)

func TestSettings(t *testing.T) {
	want := &Settings{
		Profile: "kubernetes", ClusterName: "sno", BaseDomain: "example.com", KubernetesVersion: "1.35.2", Runtime: "crio",
		Images: map[string]string{"etcd": "registry.example.com/etcd:3.6.8"}, Validity: "87600h0m0s",
		Name: "master0", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.10"), netip.MustParseAddr("2001:db8::10")},
		MachineNetworks:  []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
		InstallationDisk: "/dev/disk/by-id/wwn-0x1", InstallerArguments: []string{"--copy-network"}, KernelArguments: []string{"nosmt"},
		MasterIgnition: "http://localhost:22624/config/master", ProgramInImage: true, Created: "2026-11-25T08:00:00Z",
	}
	text := fixture.Must(want.Encode())
	file := filepath.Join(t.TempDir(), "sno-install.yaml")
	fixture.NoError(t, os.WriteFile(file, text, 0o600))
	got := fixture.Must(Read(file))
	fixture.Equal(t, "", want, got, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}))
	if at, err := got.CreatedAt(); err != nil || at.Hour() != 8 {
		t.Errorf("created at %s, %v", at, err)
	}
	_, err := (&Settings{Created: "today"}).CreatedAt()
	fixture.Fails(t, "no time", err, ErrSettings)
	for runtime, endpoint := range map[string]string{"": Containerd.Endpoint, "containerd": Containerd.Endpoint, "crio": CRIO.Endpoint} {
		if r, err := (&Settings{Runtime: runtime}).ContainerRuntime(); err != nil || r.Endpoint != endpoint {
			t.Errorf("runtime %q: %s, %v", runtime, r.Endpoint, err)
		}
	}
	_, err = (&Settings{Runtime: "docker"}).ContainerRuntime()
	fixture.Fails(t, "another runtime", err, ErrSettings, `runtime "docker": use crio or containerd`)
	if got.Domain() != "sno.example.com" {
		t.Errorf("domain %s", got.Domain())
	}
}

func TestUnusableSettings(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct{ text, want string }{
		"another version": {"profile: kubernetes\nspeed: 3\n", `unknown field "speed"`},
		"no address":      {"addresses: [host]\n", "unable to parse IP"},
		"twice":           {"name: a\nname: b\n", `already set`},
		"no YAML":         {"profile: [", "sno-install.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, "sno-install.yaml")
			fixture.NoError(t, os.WriteFile(file, []byte(test.text), 0o600))
			_, err := Read(file)
			fixture.Fails(t, "", err, ErrSettings, test.want, file)
		})
	}
	if _, err := Read(filepath.Join(dir, "none")); !errors.Is(err, ErrSettings) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
