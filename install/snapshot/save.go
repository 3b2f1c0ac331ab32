// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

const dialTimeout = 10 * time.Second

// Save saves the data of the etcd at the endpoint, a URL, to a file, which is complete and verified, or absent.
func Save(ctx context.Context, endpoint string, client *tls.Config, path string) error {
	part := path + ".unverified"
	cfg := clientv3.Config{Endpoints: []string{endpoint}, TLS: client, DialTimeout: dialTimeout, Logger: zap.NewNop(), Context: ctx}
	// The client writes part.part first, and renames it.
	defer func() { _, _ = os.Remove(part), os.Remove(part+".part") }()
	if _, err := snapshot.NewV3(zap.NewNop()).Save(ctx, cfg, part); err != nil {
		return fmt.Errorf("save the snapshot of etcd at %s: %w", endpoint, err)
	}
	if _, err := Verify(part); err != nil {
		return err
	}
	if err := os.Rename(part, path); err != nil {
		return fmt.Errorf("save the snapshot: %w", err)
	}
	return syncPath(filepath.Dir(path))
}

// DeletePrefix deletes the keys with a prefix.
func DeletePrefix(ctx context.Context, endpoint string, client *tls.Config, prefix string) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, TLS: client, DialTimeout: dialTimeout, Logger: zap.NewNop(), Context: ctx})
	if err == nil {
		_, err = c.Delete(ctx, prefix, clientv3.WithPrefix())
		_ = c.Close()
	}
	if err != nil {
		return fmt.Errorf("delete %s* in etcd at %s: %w", prefix, endpoint, err)
	}
	return nil
}

// syncPath syncs a file or folder, so that it survives a power cut.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return nil
}

var (
	// ErrCorrupt is in the error of a file that differs from what etcd sent.
	ErrCorrupt = errors.New("the snapshot is damaged; save it again")
	// ErrNoSnapshot is in the error of a file without a checksum, such as a copy of a database.
	ErrNoSnapshot = errors.New("no checksum, so it cannot be verified; save it with etcd's snapshot")
)

// Status describes a snapshot.
type Status struct {
	Revision int64
	Keys     int
	Bytes    int64
}

// Verify verifies the snapshot, its checksum first, and returns its status (U-INS-25).
func Verify(path string) (Status, error) {
	if err := checksum(path); err != nil {
		return Status{}, fmt.Errorf("snapshot %s: %w", path, err)
	}
	s, err := snapshot.NewV3(zap.NewNop()).Status(path)
	if err != nil {
		return Status{}, fmt.Errorf("snapshot %s: %w: %w", path, ErrCorrupt, err)
	}
	return Status{Revision: s.Revision, Keys: s.TotalKey, Bytes: s.TotalSize}, nil
}

// sector divides the size of every database. A snapshot has its checksum after that.
const sector = 512

// checksum verifies the SHA-256 sum at the end, before a library follows references in pages.
func checksum(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	size := info.Size() - sha256.Size
	switch {
	case info.Size() > 0 && info.Size()%sector == 0:
		return ErrNoSnapshot
	case size <= 0 || size%sector != 0:
		return fmt.Errorf("%w: %d bytes", ErrCorrupt, info.Size())
	}
	sum := sha256.New()
	if _, err := io.CopyN(sum, f, size); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	want := make([]byte, sha256.Size)
	if _, err := io.ReadFull(f, want); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if !bytes.Equal(sum.Sum(nil), want) {
		return fmt.Errorf("%w: its checksum differs", ErrCorrupt)
	}
	return nil
}
