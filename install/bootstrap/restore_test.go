// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/snapshot"
)

const settings = "profile: kubernetes\nclusterName: sno\nbaseDomain: example.com\nvalidity: 1h\ncreated: \"2026-11-25T08:00:00Z\"\nname: cp-1.example\n"

// The peer URL is that of render's golden pods in both profiles (R-BIP-10).
func TestPeerURL(t *testing.T) {
	for _, profile := range []string{"kubernetes", "openshift"} {
		t.Run(profile, func(t *testing.T) {
			text := fixture.Must(os.ReadFile("../../render/etcd/testdata/" + profile + "/one-pod.yaml"))
			root := t.TempDir()
			fixture.Put(t, root, node.ManifestDir+"/etcd-pod.yaml", string(text))
			_, got, err := member(root, "cp-1")
			if err != nil || !strings.Contains(string(text), "cp-1="+got) {
				t.Errorf("%s, %v: the pod's initial cluster differs", got, err)
			}
			if _, _, err := member(root, "cp-2"); !errors.Is(err, ErrMember) || !strings.Contains(err.Error(), "NODE_cp_2_IP") {
				t.Errorf("another node: %v", err)
			}
		})
	}
}

// Without a member there is a snapshot or an error, never an empty etcd. Later boots change nothing, also without a
// snapshot.
func TestRestore(t *testing.T) {
	root := t.TempDir()
	if err := Restore(t.Context(), root); !errors.Is(err, ErrNoData) || !strings.Contains(err.Error(), node.Snapshot) {
		t.Fatalf("no snapshot: %v", err)
	}
	save(t, filepath.Join(root, node.Snapshot))
	if err := Restore(t.Context(), root); !errors.Is(err, node.ErrSettings) {
		t.Fatalf("no settings: %v", err)
	}
	fixture.Put(t, root, node.BootstrapSettings, settings)
	fixture.Put(t, root, node.ManifestDir+"/etcd-pod.yaml", `{"spec":{"containers":[{"name":"etcd","env":[{"name":"NODE_cp_1_example_IP","value":"[2001:db8::10]"}]}]}}`)
	whole := fixture.Must(os.ReadFile(filepath.Join(root, node.Snapshot)))
	for _, damaged := range []string{"", string(whole[:len(whole)/2]), strings.Replace(string(whole), "/k", "/j", 1)} {
		fixture.Put(t, root, node.Snapshot, damaged)
		if err := Restore(t.Context(), root); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), node.Snapshot) {
			t.Errorf("a damaged snapshot of %d bytes: %v", len(damaged), err)
		}
	}
	if done, err := snapshot.HasMember(filepath.Join(root, node.EtcdData)); done || err != nil {
		t.Errorf("etcd has data of a damaged snapshot: %v", err)
	}
	fixture.Put(t, root, node.Snapshot, string(whole))
	fixture.NoError(t, Restore(t.Context(), root))
	for _, dir := range []string{node.SnapshotDir, node.BootstrapConfigs} {
		fixture.NoError(t, os.RemoveAll(filepath.Join(root, dir)))
	}
	if err := Restore(t.Context(), root); err != nil {
		t.Errorf("at a later boot: %v", err)
	}
}
