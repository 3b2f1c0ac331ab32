// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

const (
	member = "member"
	// aside is in the data folder, which may be a file system of its own.
	aside = ".restoring"
	token = "etcd-cluster"
)

// Options of Restore.
type Options struct {
	Path string
	// Name and PeerURL are the flags of the etcd, which refuses the data of another member.
	Name    string
	PeerURL string
	DataDir string
	// BeforeMove is called before the member is moved, so that tests can interrupt there; nil does nothing.
	BeforeMove func() error
}

// HasMember reports whether the data folder has a member.
func HasMember(dataDir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dataDir, member))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err //nolint:wrapcheck // it names the folder
}

// Restore makes the data of a single member from a snapshot. An existing member is not changed. After an error or a
// crash the data folder has no member, and the same call can be repeated.
func Restore(o Options) error {
	work := filepath.Join(o.DataDir, aside)
	done, err := HasMember(o.DataDir)
	if err != nil {
		return fmt.Errorf("restore etcd: %w", err)
	}
	if done {
		return remove(work) // of a run that was killed after the move
	}
	if _, err := Verify(o.Path); err != nil {
		return err
	}
	if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
		return fmt.Errorf("restore etcd: %w", err)
	}
	if err := remove(work); err != nil {
		return err
	}
	if err := restore(o, work); err != nil {
		return errors.Join(err, remove(work))
	}
	return remove(work)
}

func restore(o Options, work string) error {
	err := snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: o.Path, Name: o.Name, PeerURLs: []string{o.PeerURL}, OutputDataDir: work,
		InitialCluster: o.Name + "=" + o.PeerURL, InitialClusterToken: token,
	})
	if err != nil {
		return fmt.Errorf("restore etcd from %s as member %s at %s: %w", o.Path, o.Name, o.PeerURL, err)
	}
	if err := filepath.WalkDir(work, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			err = os.Chmod(path, 0o600) // the library makes one readable for all users (U-INS-24)
		}
		if err != nil {
			return err
		}
		return syncPath(path)
	}); err != nil {
		return fmt.Errorf("restore etcd: %w", err)
	}
	if o.BeforeMove != nil {
		if err := o.BeforeMove(); err != nil {
			return err
		}
	}
	if err := os.Rename(filepath.Join(work, member), filepath.Join(o.DataDir, member)); err != nil {
		return fmt.Errorf("restore etcd: %w", err)
	}
	return syncPath(o.DataDir)
}

func remove(work string) error {
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("restore etcd: %w", err)
	}
	return nil
}
