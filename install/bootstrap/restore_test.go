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

	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/snapshot"
)

func save(t *testing.T, file string) {
	t.Helper()
	local, err := url.Parse("http://127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := embed.NewConfig()
	cfg.Dir, cfg.LogLevel, cfg.LogOutputs = t.TempDir(), "error", []string{os.DevNull}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls, cfg.ListenPeerUrls = []url.URL{*local}, []url.URL{*local}, []url.URL{*local}
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	<-e.Server.ReadyNotify()
	endpoint := "http://" + e.Clients[0].Addr().String()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // of a test
	if _, err := client.Put(ctx, "/k", "v"); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := snapshot.Save(ctx, endpoint, nil, file); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, root, file, text string) {
	t.Helper()
	path := filepath.Join(root, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const settings = "profile: kubernetes\nclusterName: sno\nbaseDomain: example.com\nvalidity: 1h\ncreated: \"2026-11-25T08:00:00Z\"\nname: cp-1.example\n"

// The peer URL is that of render's golden pods in both profiles (R-BIP-10).
func TestPeerURL(t *testing.T) {
	for _, profile := range []string{"kubernetes", "openshift"} {
		t.Run(profile, func(t *testing.T) {
			text, err := os.ReadFile("../../render/etcd/testdata/" + profile + "/one-pod.yaml")
			if err != nil {
				t.Fatal(err)
			}
			root := t.TempDir()
			put(t, root, node.ManifestDir+"/etcd-pod.yaml", string(text))
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
	put(t, root, node.BootstrapSettings, settings)
	put(t, root, node.ManifestDir+"/etcd-pod.yaml", `{"spec":{"containers":[{"name":"etcd","env":[{"name":"NODE_cp_1_example_IP","value":"[2001:db8::10]"}]}]}}`)
	whole, err := os.ReadFile(filepath.Join(root, node.Snapshot))
	if err != nil {
		t.Fatal(err)
	}
	for _, damaged := range []string{"", string(whole[:len(whole)/2]), strings.Replace(string(whole), "/k", "/j", 1)} {
		put(t, root, node.Snapshot, damaged)
		if err := Restore(t.Context(), root); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), node.Snapshot) {
			t.Errorf("a damaged snapshot of %d bytes: %v", len(damaged), err)
		}
	}
	if done, err := snapshot.HasMember(filepath.Join(root, node.EtcdData)); done || err != nil {
		t.Errorf("etcd has data of a damaged snapshot: %v", err)
	}
	put(t, root, node.Snapshot, string(whole))
	if err := Restore(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{node.SnapshotDir, node.BootstrapConfigs} {
		if err := os.RemoveAll(filepath.Join(root, dir)); err != nil {
			t.Fatal(err)
		}
	}
	if err := Restore(t.Context(), root); err != nil {
		t.Errorf("at a later boot: %v", err)
	}
}
