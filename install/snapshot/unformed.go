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
	// logFolder is the folder of a member's log.
	logFolder = "wal"
	// firstSegment is the file with which each log begins. It is removed when the entries in it are in a snapshot.
	firstSegment = "0000000000000000-0000000000000000.wal"
)

// RemoveUnformed removes the member of an etcd that was killed after it had created its log and before it committed the first entry, and reports
// whether it did. Such a member has no voters and never elects a leader, however often it is started (U-INS-32); without it, etcd forms the cluster
// anew. A member that has committed an entry is left alone, and so is a folder without a log. The etcd must not run.
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
	_, state, _, err := reader.ReadAll() // closes what it has read
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
