package offline

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

	"github.com/solonode/sno/patch/mustgather"
)

// ErrArchive is returned for a file that is no must-gather.
var ErrArchive = errors.New("neither a folder nor a readable .tar.gz of a must-gather")

const (
	// deepest is how many folders lie above the tree at most: those that a person packed, the must-gather's own, the image's.
	deepest = 3
	// largest bounds one file of an archive. The largest object that etcd stores is smaller by far, a list of them may be longer.
	largest = 256 << 20
)

// Open opens the folder or the .tar.gz. The second value has to be called at the end; it removes what was unpacked.
func Open(file string) (*mustgather.Tree, func() error, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, nil, fmt.Errorf("the must-gather: %w", err)
	}
	if info.IsDir() {
		tree, err := find(os.DirFS(file), deepest)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		return tree, func() error { return nil }, nil
	}
	folder, err := os.MkdirTemp("", "kubectl-sno-")
	if err != nil {
		return nil, nil, fmt.Errorf("making room for the must-gather: %w", err)
	}
	end := func() error { return os.RemoveAll(folder) }
	if err := unpack(file, folder); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", file, err), end())
	}
	tree, err := find(os.DirFS(folder), deepest)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", file, err), end())
	}
	return tree, end, nil
}

// find opens the tree, which may be some folders below.
func find(files fs.FS, deep int) (*mustgather.Tree, error) {
	tree, err := mustgather.Open(files)
	if err == nil || deep == 0 {
		return tree, err
	}
	entries, readErr := fs.ReadDir(files, ".")
	if readErr != nil {
		return nil, err
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		below, subErr := fs.Sub(files, entry.Name())
		if subErr != nil {
			continue
		}
		if tree, findErr := find(below, deep-1); findErr == nil {
			return tree, nil
		}
	}
	return nil, err
}

// unpack takes out of the archive what a tree reads: objects, and not the logs beside them, which are most of it.
func unpack(file, folder string) error {
	archive, err := os.Open(file)
	if err != nil {
		return err
	}
	defer archive.Close() //nolint:errcheck // it was only read
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrArchive, err)
	}
	into, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer into.Close() //nolint:errcheck // every file in it was closed
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%w: %w", ErrArchive, err)
		case header.Typeflag != tar.TypeReg || !isObject(header.Name):
			continue
		}
		if err := write(into, path.Clean(header.Name), io.LimitReader(files, largest)); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrArchive, header.Name, err)
		}
	}
}

func isObject(name string) bool {
	folders := strings.Split(path.Dir(name), "/")
	return path.Ext(name) == ".yaml" && (slices.Contains(folders, "cluster-scoped-resources") || slices.Contains(folders, "namespaces"))
}

func write(into *os.Root, name string, from io.Reader) error {
	if err := into.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	made, err := into.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(made, from)
	return errors.Join(err, made.Close())
}
