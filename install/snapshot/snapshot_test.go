// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/snapshot"
)

const (
	name = "cp-1"
	keys = 500
)

func start(dir, peer string) (endpoint string, stop func(), err error) {
	cfg := embed.NewConfig()
	cfg.Dir, cfg.Name, cfg.LogLevel, cfg.LogOutputs = dir, name, "error", []string{os.DevNull}
	advertised, err := url.Parse(peer)
	if err != nil {
		return "", nil, err
	}
	local := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls, cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = local, local, local, []url.URL{*advertised}
	cfg.InitialCluster = name + "=" + peer
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return "", nil, err
	}
	select {
	case <-e.Server.ReadyNotify():
	case err := <-e.Err():
		e.Close()
		return "", nil, err
	case <-time.After(time.Minute):
		e.Close()
		return "", nil, errors.New("etcd is not ready")
	}
	return "http://" + e.Clients[0].Addr().String(), e.Close, nil
}

func dial(endpoint string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: 10 * time.Second})
}

const peerURL = "https://192.0.2.10:2380"

var saved = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "snapshot-test-")
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	endpoint, stop, err := start(filepath.Join(dir, "etcd"), "http://127.0.0.1:2380")
	if err != nil {
		return "", err
	}
	defer stop()
	client, err := dial(endpoint)
	if err != nil {
		return "", err
	}
	defer client.Close() //nolint:errcheck // of a test
	for i := range keys {
		if _, err := client.Put(ctx, fmt.Sprintf("/key/%03d", i), strings.Repeat("v", i)); err != nil {
			return "", err
		}
	}
	file := filepath.Join(dir, "snapshot.db")
	return file, snapshot.Save(ctx, endpoint, nil, file)
})

func TestMain(m *testing.M) {
	code := m.Run()
	if file, err := saved(); err == nil {
		_ = os.RemoveAll(filepath.Dir(file))
	}
	os.Exit(code)
}

func file(t *testing.T) string {
	t.Helper()
	return fixture.Must(saved())
}

// A restored etcd has the data and the identity of the node's pod. The snapshot is much smaller than a data folder
// (R-BIP-10, U-INS-7).
func TestRestored(t *testing.T) {
	f := file(t)
	status, err := snapshot.Verify(f)
	if err != nil || status.Keys < keys || status.Revision < keys || status.Bytes > 512<<10 {
		t.Errorf("status %+v, %v", status, err)
	}
	entries, err := os.ReadDir(filepath.Dir(f))
	if err != nil || len(entries) != 2 {
		t.Errorf("files next to the snapshot: %v, %v", entries, err)
	}
	dir := filepath.Join(t.TempDir(), "etcd")
	fixture.NoError(t, snapshot.Restore(snapshot.Options{Path: f, Name: name, PeerURL: peerURL, DataDir: dir}))
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("in the data folder: %v, %v", left, err)
	}
	fixture.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		return err
	}))
	endpoint, stop, err := start(dir, peerURL)
	fixture.NoError(t, err)
	defer stop()
	client := fixture.Must(dial(endpoint))
	defer client.Close() //nolint:errcheck // of a test
	got, err := client.Get(t.Context(), "/key/", clientv3.WithPrefix())
	if err != nil || len(got.Kvs) != keys || len(got.Kvs[499].Value) != 499 {
		t.Fatalf("%d keys, %v", len(got.Kvs), err)
	}
	members, err := client.MemberList(t.Context())
	if err != nil || len(members.Members) != 1 || members.Members[0].Name != name {
		t.Fatalf("members %v, %v", members, err)
	}
	fixture.Equal(t, "peer URLs", []string{peerURL}, members.Members[0].PeerURLs)
	// A second call does not change the member, and needs no snapshot.
	if err := snapshot.Restore(snapshot.Options{Path: "none", Name: name, PeerURL: peerURL, DataDir: dir}); err != nil {
		t.Errorf("restored again: %v", err)
	}
	if got, err := client.Put(t.Context(), "/after", "x"); err != nil || got.Header.Revision <= status.Revision-1 {
		t.Errorf("write after that: %v, %v", got, err)
	}
}

func TestDamaged(t *testing.T) {
	whole := fixture.Must(os.ReadFile(file(t)))
	flipped := slices.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	garbage := make([]byte, 4096)
	sum := sha256.Sum256(garbage)
	for test, c := range map[string]struct {
		text []byte
		want error
	}{
		"one bit":              {flipped, snapshot.ErrCorrupt},
		"truncated":            {whole[:len(whole)-1], snapshot.ErrCorrupt},
		"truncated by a page":  {whole[:len(whole)-4096], snapshot.ErrCorrupt},
		"only the checksum":    {whole[len(whole)-sha256.Size:], snapshot.ErrCorrupt},
		"empty":                {nil, snapshot.ErrCorrupt},
		"copy of a database":   {whole[:len(whole)-sha256.Size], snapshot.ErrNoSnapshot},
		"garbage with its sum": {append(garbage, sum[:]...), snapshot.ErrCorrupt},
	} {
		t.Run(test, func(t *testing.T) {
			dir := t.TempDir()
			f := filepath.Join(dir, "snapshot.db")
			fixture.NoError(t, os.WriteFile(f, c.text, 0o600))
			data := filepath.Join(dir, "etcd")
			err := snapshot.Restore(snapshot.Options{Path: f, Name: name, PeerURL: peerURL, DataDir: data})
			fixture.Fails(t, "", err, c.want, f)
			fixture.Absent(t, data)
		})
	}
	if _, err := snapshot.Verify(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

const killedEnv = "SNAPSHOT_TEST_KILLED"

// After a kill between restoring and moving, the data folder has no member, which etcd would use. The same call
// restores it (R-BIP-3).
func TestKilled(t *testing.T) {
	if dir := os.Getenv(killedEnv); dir != "" {
		err := snapshot.Restore(snapshot.Options{Path: os.Getenv("SNAPSHOT_TEST_FILE"), Name: name, PeerURL: peerURL, DataDir: dir, BeforeMove: func() error {
			self, err := os.FindProcess(os.Getpid())
			if err != nil {
				return err
			}
			if err := self.Kill(); err != nil {
				return err
			}
			select {}
		}})
		t.Fatalf("not killed: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "etcd")
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilled$")
	c.Env = append(os.Environ(), killedEnv+"="+dir, "SNAPSHOT_TEST_FILE="+file(t))
	if out, err := c.CombinedOutput(); err == nil || strings.Contains(string(out), "not killed") {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, ".restoring", "member")); err != nil {
		t.Fatalf("killed before the member was restored: %v", err)
	}
	if done, err := snapshot.HasMember(dir); done || err != nil {
		t.Fatalf("restored: %t, %v", done, err)
	}
	o := snapshot.Options{Path: file(t), Name: name, PeerURL: peerURL, DataDir: dir}
	fixture.NoError(t, snapshot.Restore(o))
	// The remains of a run that was killed after the move are removed.
	fixture.NoError(t, os.Mkdir(filepath.Join(dir, ".restoring"), 0o700))
	fixture.NoError(t, snapshot.Restore(o))
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "member" {
		t.Errorf("in the data folder: %v, %v", left, err)
	}
}

func TestSaveFails(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	dir := t.TempDir()
	fixture.Fails(t, "", snapshot.Save(ctx, "http://127.0.0.1:1", nil, filepath.Join(dir, "snapshot.db")), "http://127.0.0.1:1")
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func killed(t *testing.T, entries ...raftpb.Entry) string {
	t.Helper()
	peers := fixture.Must(types.NewURLsMap(name + "=" + peerURL))
	cluster := fixture.Must(membership.NewClusterFromURLsMap(zap.NewNop(), "etcd-cluster", peers))
	metadata := fixture.Must((&etcdserverpb.Metadata{NodeID: uint64(cluster.MemberByName(name).ID), ClusterID: uint64(cluster.ID())}).Marshal())
	dir := filepath.Join(t.TempDir(), "etcd")
	fixture.NoError(t, os.MkdirAll(filepath.Join(dir, "member", "snap"), 0o700))
	log := fixture.Must(wal.Create(zap.NewNop(), filepath.Join(dir, "member", "wal"), metadata))
	fixture.NoError(t, log.Save(raftpb.HardState{}, entries))
	fixture.NoError(t, log.Close())
	return dir
}

func formed(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "etcd")
	_, stop, err := start(dir, peerURL)
	fixture.NoError(t, err)
	stop()
	return dir
}

// An etcd that was killed before it committed anything forms a new cluster. No other loses its data.
func TestRemoveUnformed(t *testing.T) {
	log := filepath.Join("member", "wal", "0000000000000000-0000000000000000.wal")
	for test, c := range map[string]struct {
		dir           func(t *testing.T) string
		removed, fail bool
	}{
		"an empty log": {dir: func(t *testing.T) string { return killed(t) }, removed: true},
		"an entry, not committed": {dir: func(t *testing.T) string {
			return killed(t, raftpb.Entry{Term: 1, Index: 1, Type: raftpb.EntryConfChange})
		}, removed: true},
		"formed": {dir: formed},
		"restored": {dir: func(t *testing.T) string {
			dir := filepath.Join(t.TempDir(), "etcd")
			fixture.NoError(t, snapshot.Restore(snapshot.Options{Path: file(t), Name: name, PeerURL: peerURL, DataDir: dir}))
			return dir
		}},
		"no folder": {dir: func(t *testing.T) string { return filepath.Join(t.TempDir(), "none") }},
		"no log": {dir: func(t *testing.T) string {
			dir := killed(t)
			fixture.NoError(t, os.RemoveAll(filepath.Join(dir, "member", "wal")))
			return dir
		}},
		"a log without its first file": {dir: func(t *testing.T) string {
			dir := formed(t)
			fixture.NoError(t, os.Rename(filepath.Join(dir, log), filepath.Join(dir, "member", "wal", "0000000000000001-0000000000000009.wal")))
			return dir
		}},
		"a damaged log": {dir: func(t *testing.T) string {
			dir := killed(t)
			fixture.NoError(t, os.WriteFile(filepath.Join(dir, log), []byte("damaged: no record begins like this"), 0o600))
			return dir
		}, fail: true},
	} {
		t.Run(test, func(t *testing.T) {
			dir := c.dir(t)
			before, _ := os.ReadDir(dir)
			removed, err := snapshot.RemoveUnformed(dir)
			if removed != c.removed || (err != nil) != c.fail {
				t.Fatalf("removed %t, %v; want %t", removed, err, c.removed)
			}
			after, _ := os.ReadDir(dir)
			if wantLeft := len(before) > 0 && !c.removed; wantLeft != (len(after) > 0) {
				t.Errorf("in the data folder: %v", after)
			}
			if !c.removed {
				return
			}
			_, stop, err := start(dir, peerURL)
			if err != nil {
				t.Fatalf("etcd does not form its cluster: %v", err)
			}
			stop()
		})
	}
}
