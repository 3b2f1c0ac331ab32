// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	keptFolders = 3
	// unusedFor protects folders of processes that run now.
	unusedFor = 24 * time.Hour
)

// CheckoutFolder makes a folder of the cache that belongs to one checkout, and marks it as used. Of the folders beside
// it that match a pattern of filepath.Glob it keeps the three that were used last, and what was used in the last day: a
// checkout that is gone would leave hundreds of megabytes for ever.
func CheckoutFolder(folder, pattern string) error {
	now := time.Now()
	if err := errors.Join(os.MkdirAll(folder, 0o755), os.Chtimes(folder, now, now)); err != nil {
		return fmt.Errorf("make a folder of the cache: %w", err)
	}
	beside, err := filepath.Glob(filepath.Join(filepath.Dir(folder), pattern))
	if err != nil {
		return fmt.Errorf("find old folders of the cache: %w", err)
	}
	used := map[string]time.Time{}
	for _, path := range beside {
		if info, err := os.Stat(path); err == nil && info.IsDir() { // another process may have removed it
			used[path] = info.ModTime()
		}
	}
	beside = slices.DeleteFunc(beside, func(path string) bool { return used[path].IsZero() })
	slices.SortFunc(beside, func(a, b string) int { return used[b].Compare(used[a]) })
	for _, old := range beside[min(keptFolders, len(beside)):] {
		if now.Sub(used[old]) < unusedFor {
			continue
		}
		if err := os.RemoveAll(old); err != nil {
			return fmt.Errorf("remove an old folder of the cache: %w", err)
		}
	}
	return nil
}
