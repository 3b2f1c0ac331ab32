// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ErrDiffers means that a second build has other bytes.
var ErrDiffers = errors.New("the build is not reproducible")

// Check builds again from a copy of the checkout in another folder, and compares all files with those of the first
// build. With fresh the second build has an empty build cache; without it packages that are the same in both folders
// are compiled once, and only linked again.
func Check(ctx context.Context, folder string, o Options, fresh bool) (err error) {
	started := time.Now()
	scratch, err := os.MkdirTemp("", "sno-dist-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	root := filepath.Join(scratch, "another", "folder")
	if err := copyTree(ctx, o.Root, root); err != nil {
		return err
	}
	o.Root = root
	if fresh {
		o.Cache = filepath.Join(scratch, "cache")
	}
	logf(o.Progress, "Building again from a copy in another folder")
	second := filepath.Join(scratch, "dist")
	if _, err := Write(ctx, second, o); err != nil {
		return err
	}
	files, err := compare(folder, second)
	if err == nil {
		logf(o.Progress, "All %d files of the second build are the same, after %s", files, since(started))
	}
	return err
}

// copyTree copies the files that git tracks or would track.
func copyTree(ctx context.Context, from, to string) error {
	names, err := git(ctx, from, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimRight(names, "\x00"), "\x00") {
		source, target := filepath.Join(from, name), filepath.Join(to, name)
		info, err := os.Lstat(source)
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, but still in git's index
		}
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			continue
		}
		content, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(target), 0o755), os.WriteFile(target, content, info.Mode().Perm())); err != nil {
			return err
		}
	}
	return nil
}

// compare returns the number of files, and an error that lists all that differ.
func compare(first, second string) (int, error) {
	a, err := names(first)
	if err != nil {
		return 0, err
	}
	b, err := names(second)
	if err != nil {
		return 0, err
	}
	var faults []error
	fault := func(name, format string, args ...any) {
		faults = append(faults, fmt.Errorf("%w: %s %s", ErrDiffers, name, fmt.Sprintf(format, args...)))
	}
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch {
		case !a[name]:
			fault(name, "is only in the second build")
			continue
		case !b[name]:
			fault(name, "is only in the first build")
			continue
		}
		x, err := os.ReadFile(filepath.Join(first, name))
		if err != nil {
			return 0, err
		}
		y, err := os.ReadFile(filepath.Join(second, name))
		if err != nil {
			return 0, err
		}
		if !bytes.Equal(x, y) {
			fault(name, "differs at byte %d of %d and %d", common(x, y), len(x), len(y))
		}
	}
	return len(all), errors.Join(faults...)
}

// common returns the number of equal bytes at the beginning.
func common(x, y []byte) int {
	n := min(len(x), len(y))
	for i := range n {
		if x[i] != y[i] {
			return i
		}
	}
	return n
}

func names(folder string) (map[string]bool, error) {
	all := map[string]bool{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		all[name] = true
		return err
	})
	return all, err
}
