// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

const (
	folderPrefix = "sno-cluster-"
	lockFile     = "lock"
	keepFile     = "keep"
	pkiDir       = "pki"
	// socketLimit is the lowest limit of all platforms for the path of a Unix socket, in bytes.
	socketLimit = 103
)

type folder struct {
	path string
	lock *flock.Flock
	keep bool
}

// newFolder makes a folder under parent (empty: the system's temporary folder), after removing those of owners that
// have ended.
func newFolder(parent string, keep bool) (*folder, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("create the parent of the cluster's folder: %w", err)
	}
	if err := sweep(parent); err != nil {
		return nil, err
	}
	// The folder gets the name that sweep searches for after it is locked.
	fresh, err := os.MkdirTemp(parent, "."+folderPrefix)
	if err != nil {
		return nil, fmt.Errorf("create the cluster's folder: %w", err)
	}
	f := &folder{path: filepath.Join(parent, filepath.Base(fresh)[1:]), keep: keep}
	lock := flock.New(filepath.Join(fresh, lockFile))
	_, err = lock.TryLock()
	if err == nil {
		err = os.Mkdir(filepath.Join(fresh, pkiDir), 0o700)
	}
	if err == nil && keep {
		err = os.WriteFile(filepath.Join(fresh, keepFile), nil, 0o600)
	}
	if err == nil {
		err = os.Rename(fresh, f.path)
	}
	if err != nil {
		return nil, fmt.Errorf("prepare the cluster's folder: %w", errors.Join(err, lock.Unlock(), os.RemoveAll(fresh)))
	}
	f.lock = lock
	if socket := filepath.Join(f.path, etcdSocketFile); len(socket) > socketLimit {
		return nil, fmt.Errorf("the path %s is longer than the %d bytes that a Unix socket may have: set Config.ParentDir or TMPDIR to a shorter one: %w",
			socket, socketLimit, errors.Join(fs.ErrInvalid, f.remove()))
	}
	return f, nil
}

func (f *folder) remove() error {
	err := f.lock.Unlock()
	if !f.keep {
		err = errors.Join(err, os.RemoveAll(f.path))
	}
	if err != nil {
		return fmt.Errorf("remove the cluster's folder: %w", err)
	}
	return nil
}

// sweep removes the cluster folders in parent whose owner has ended and that are not kept, except those of other users.
func sweep(parent string) error {
	dirs, err := filepath.Glob(filepath.Join(parent, folderPrefix+"*"))
	if err != nil {
		return fmt.Errorf("find folders of ended clusters: %w", err)
	}
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, keepFile)); err == nil {
			continue
		}
		// Without a lock file it is not a cluster's folder, or no longer one.
		if _, err := os.Stat(filepath.Join(dir, lockFile)); err != nil {
			continue
		}
		lock := flock.New(filepath.Join(dir, lockFile))
		locked, err := lock.TryLock()
		if err != nil || !locked {
			continue
		}
		err = errors.Join(lock.Unlock(), os.RemoveAll(dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("remove the folder of an ended cluster: %w", err)
		}
	}
	return nil
}
