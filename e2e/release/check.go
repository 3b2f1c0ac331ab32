// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ErrDiffers means that a second build has other bytes.
var ErrDiffers = errors.New("the build is not reproducible")

// Check builds again from a copy of the checkout in another folder, and compares the checksums of all files with those
// of the first build. With fresh the second build has an empty build cache; without it packages that are the same in
// both folders are compiled once, and only linked again.
func Check(ctx context.Context, folder string, o Options, fresh bool) (err error) {
	started := time.Now()
	scratch, err := os.MkdirTemp("", "sno-release-")
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
	err = compare(folder, second)
	if err == nil {
		logf(o.Progress, "All files of the second build are the same, after %s", since(started))
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

// compare returns an error that lists the files of two builds that differ, by their checksums.
func compare(first, second string) error {
	var sums [2]map[string]string
	for i, folder := range []string{first, second} {
		text, err := os.ReadFile(filepath.Join(folder, Checksums))
		if err != nil {
			return err
		}
		sums[i] = map[string]string{}
		for line := range strings.Lines(string(text)) {
			sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
			sums[i][name] = sum
		}
	}
	all := maps.Clone(sums[0])
	maps.Copy(all, sums[1])
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if a, b := sums[0][name], sums[1][name]; a != b {
			faults = append(faults, fmt.Errorf("%w: %s has the checksums %.12q and %.12q", ErrDiffers, name, a, b))
		}
	}
	return errors.Join(faults...)
}
