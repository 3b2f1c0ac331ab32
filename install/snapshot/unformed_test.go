// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/snapshot"
)

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
	if err != nil {
		t.Fatal(err)
	}
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
