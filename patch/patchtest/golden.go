package patchtest

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew instead of comparing with them")

// inputDir is the part of a golden directory that is read; the files beside it are what is expected.
const inputDir = "input"

// Golden runs a function over every golden directory and compares what it returns with the files there:
//
//	<dir>/<case>/input/...    a tree as "oc adm must-gather" writes it
//	<dir>/<case>/want.yaml    what is expected, one or several files
//
// The function returns the contents by file name. A file that is missing or that nothing produced fails the test, so nothing
// in the directory is silently unused. `go test -update` writes the files anew.
func Golden(t *testing.T, dir string, produce func(t *testing.T, input fs.FS) map[string]string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) == 0 {
		t.Fatalf("%s has no golden directories", dir)
	}
	for _, entry := range entries {
		t.Run(entry.Name(), func(t *testing.T) {
			folder := filepath.Join(dir, entry.Name())
			if info, err := os.Stat(filepath.Join(folder, inputDir)); err != nil || !info.IsDir() {
				t.Fatalf("%s is no golden directory: it has no folder %s", folder, inputDir)
			}
			got := produce(t, os.DirFS(filepath.Join(folder, inputDir)))
			if t.Failed() {
				return
			}
			if *update {
				if err := rewrite(folder, got); err != nil {
					t.Fatal(err)
				}
			}
			if err := compare(folder, got); err != nil {
				t.Errorf("%v\nrun with -update when this is how it should be", err)
			}
		})
	}
}

// compare returns one error for everything that is different.
func compare(folder string, got map[string]string) error {
	if len(got) == 0 {
		return fmt.Errorf("nothing was produced for %s, so nothing is tested", folder)
	}
	present, err := expected(folder)
	if err != nil {
		return err
	}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if !slices.Contains(present, name) {
			faults = append(faults, fmt.Errorf("%s does not exist", filepath.Join(folder, name)))
			continue
		}
		want, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			faults = append(faults, err)
			continue
		}
		if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got[name], "\n")); diff != "" {
			faults = append(faults, fmt.Errorf("%s (-want +got):\n%s", filepath.Join(folder, name), diff))
		}
	}
	for _, name := range present {
		if _, produced := got[name]; !produced {
			faults = append(faults, fmt.Errorf("nothing produces %s", filepath.Join(folder, name)))
		}
	}
	return errors.Join(faults...)
}

// rewrite makes the folder what compare wants.
func rewrite(folder string, got map[string]string) error {
	present, err := expected(folder)
	if err != nil {
		return err
	}
	for _, name := range present {
		if _, produced := got[name]; !produced {
			if err := os.Remove(filepath.Join(folder, name)); err != nil {
				return err
			}
		}
	}
	for name, text := range got {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// expected lists what lies beside the input.
func expected(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if entry.Name() != inputDir {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}
