// SPDX-License-Identifier: Apache-2.0

// Package mustgather reads the output of "oc adm must-gather" and "oc adm inspect" as a client.Reader:
//
//	cluster-scoped-resources/<group>/<resource>/<name>.yaml        one object
//	cluster-scoped-resources/<group>/<resource>.yaml               a list of them
//	namespaces/<namespace>/<group>/<resource>/<name>.yaml
//	namespaces/<namespace>/<group>/<resource>.yaml
//
// The core group is "core". A must-gather has one tree per image. What is missing or corrupt is not found, and reported
// as a gap.
package mustgather

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

var (
	errTooLarge = errors.New("too large")
	errNoTree   = errors.New("not a must-gather: it contains neither " + clusterDir + " nor " + namespacesDir)
	errArchive  = errors.New("neither a folder nor a readable .tar.gz of a must-gather")
)

const (
	clusterDir    = "cluster-scoped-resources"
	namespacesDir = "namespaces"
	maxDepth      = 4 // folders above a tree: packed ones, that of the must-gather, that of the image
)

// limits bound what an archive may become on the disk: a megabyte can hold a gigabyte of zeros.
type limits struct{ file, total, files int64 }

// defaultLimits suffice for the objects of a cluster of hundreds of nodes.
var defaultLimits = limits{file: 128 << 20, total: 2 << 30, files: 500_000}

// Open opens a folder or a .tar.gz. The returned function deletes the unpacked files.
func Open(file string) (fs.FS, func() error, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the must-gather: %w", err)
	}
	if info.IsDir() {
		return os.DirFS(file), func() error { return nil }, nil
	}
	folder, err := os.MkdirTemp("", "kubectl-sno-")
	if err != nil {
		return nil, nil, fmt.Errorf("unpacking the must-gather: %w", err)
	}
	end := func() error { return os.RemoveAll(folder) }
	if err := unpack(file, folder, defaultLimits); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w: %w", file, errArchive, err), end())
	}
	return os.DirFS(folder), end, nil
}

// roots returns the trees of one folder: a must-gather in another folder is of another cluster.
func roots(files fs.FS) ([]string, error) {
	var found []string
	err := fs.WalkDir(files, ".", func(dir string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil, !entry.IsDir():
			return err
		case isRoot(files, dir):
			if len(found) == 0 || path.Dir(dir) == path.Dir(found[0]) {
				found = append(found, dir)
			}
			return fs.SkipDir
		case strings.Count(dir, "/") >= maxDepth-1:
			return fs.SkipDir
		}
		return nil
	})
	if err == nil && len(found) == 0 {
		err = errNoTree
	}
	return found, err
}

func isRoot(files fs.FS, dir string) bool {
	return slices.ContainsFunc([]string{clusterDir, namespacesDir}, func(name string) bool {
		info, err := fs.Stat(files, path.Join(dir, name))
		return err == nil && info.IsDir()
	})
}

// unpack extracts objects, without the logs, which are most of an archive.
func unpack(file, folder string, most limits) error {
	archive, err := os.Open(file)
	if err != nil {
		return err
	}
	defer archive.Close() //nolint:errcheck // it was only read
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return err
	}
	into, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer into.Close() //nolint:errcheck // nothing is buffered
	left := most
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg || !isObject(header.Name) {
			continue
		}
		left.files--
		switch {
		case header.Size > most.file:
			return fmt.Errorf("%s: %w: it has %d bytes, at most %d are read", header.Name, errTooLarge, header.Size, most.file)
		case header.Size > left.total:
			return fmt.Errorf("%s: %w: the objects have more than %d bytes; unpack the archive and give the folder", header.Name, errTooLarge, most.total)
		case left.files < 0:
			return fmt.Errorf("%s: %w: there are more than %d objects; unpack the archive and give the folder", header.Name, errTooLarge, most.files)
		}
		content, err := io.ReadAll(files)
		if err != nil {
			return fmt.Errorf("%s: %w", header.Name, err)
		}
		left.total -= int64(len(content))
		name := path.Clean(header.Name)
		if err := errors.Join(into.MkdirAll(path.Dir(name), 0o700), into.WriteFile(name, content, 0o600)); err != nil {
			return fmt.Errorf("%s: %w", header.Name, err)
		}
	}
}

func isObject(name string) bool {
	folders := strings.Split(path.Dir(name), "/")
	return path.Ext(name) == ".yaml" && (slices.Contains(folders, clusterDir) || slices.Contains(folders, namespacesDir))
}
