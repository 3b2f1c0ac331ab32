// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/snapshot"
)

func save(t *testing.T, file string) {
	t.Helper()
	local := fixture.Must(url.Parse("http://127.0.0.1:0"))
	cfg := embed.NewConfig()
	cfg.Dir, cfg.LogLevel, cfg.LogOutputs = t.TempDir(), "error", []string{os.DevNull}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls, cfg.ListenPeerUrls = []url.URL{*local}, []url.URL{*local}, []url.URL{*local}
	e := fixture.Must(embed.StartEtcd(cfg))
	defer e.Close()
	<-e.Server.ReadyNotify()
	endpoint := "http://" + e.Clients[0].Addr().String()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := fixture.Must(clientv3.New(clientv3.Config{Endpoints: []string{endpoint}}))
	defer client.Close() //nolint:errcheck // of a test
	fixture.Must(client.Put(ctx, "/k", "v"))
	fixture.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	fixture.NoError(t, snapshot.Save(ctx, endpoint, nil, file))
}

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
