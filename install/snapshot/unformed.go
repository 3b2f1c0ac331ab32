// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
)

const (
	logFolder = "wal"
	// firstSegment is the first file of a log. etcd removes it when a snapshot has its entries.
	firstSegment = "0000000000000000-0000000000000000.wal"
)

// RemoveUnformed removes the member of an etcd, which must not run, that created its log and committed no entry, and
// reports whether it did. Such a member has no voters and never elects a leader (U-INS-32); without it, etcd forms a
// new cluster. A member with a committed entry, and a folder without a log, are not changed.
func RemoveUnformed(dataDir string) (bool, error) {
	log := filepath.Join(dataDir, member, logFolder)
	if _, err := os.Stat(filepath.Join(log, firstSegment)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return false, fmt.Errorf("read the log of etcd: %w", err)
	}
	reader, err := wal.OpenForRead(zap.NewNop(), log, walpb.Snapshot{})
	if err != nil {
		return false, fmt.Errorf("read the log of etcd in %s: %w", log, err)
	}
	_, state, _, err := reader.ReadAll() // it closes the reader
	if err != nil {
		return false, fmt.Errorf("read the log of etcd in %s: %w", log, err)
	}
	if state.Commit > 0 {
		return false, nil
	}
	if err := os.RemoveAll(filepath.Join(dataDir, member)); err != nil {
		return false, fmt.Errorf("remove the data of an etcd that has committed nothing: %w", err)
	}
	return true, syncPath(dataDir)
}
