// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

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
