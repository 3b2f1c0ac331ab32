// SPDX-License-Identifier: Apache-2.0

package golden

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

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// inputDir is the input in a golden directory; the files next to it are the expected output.
const inputDir = "input"

// Test runs a function over each golden directory <dir>/<case> and compares its results, by file name, with the files
// next to input, a tree as "oc adm must-gather" writes it. Missing and additional files fail the test.
// `go test -update` writes the files.
func Test(t *testing.T, dir string, produce func(t *testing.T, input fs.FS) map[string]string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	noError(t, err)
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
				noError(t, rewrite(folder, got))
			}
			if err := compare(folder, got); err != nil {
				t.Errorf("%v\nrun with -update if this is intended", err)
			}
		})
	}
}

// File compares a text with a file that is generated from code, or writes it with -update.
func File(t testing.TB, path, text string) {
	t.Helper()
	if *update {
		noError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	there, err := os.ReadFile(path)
	noError(t, err)
	if diff := cmp.Diff(text, string(there)); diff != "" {
		t.Errorf("%s (-generated +there), run with -update:\n%s", path, diff)
	}
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func compare(folder string, got map[string]string) error {
	if len(got) == 0 {
		return fmt.Errorf("nothing was produced for %s, so nothing is tested", folder)
	}
	want, err := expected(folder)
	if err != nil {
		return err
	}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(got)) {
		text, exists := want[name]
		diff := cmp.Diff(strings.Split(text, "\n"), strings.Split(got[name], "\n"))
		switch {
		case !exists:
			faults = append(faults, fmt.Errorf("%s does not exist", filepath.Join(folder, name)))
		case diff != "":
			faults = append(faults, fmt.Errorf("%s (-want +got):\n%s", filepath.Join(folder, name), diff))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if _, produced := got[name]; !produced {
			faults = append(faults, fmt.Errorf("nothing produces %s", filepath.Join(folder, name)))
		}
	}
	return errors.Join(faults...)
}

// rewrite writes the expected files.
func rewrite(folder string, got map[string]string) error {
	old, err := expected(folder)
	if err != nil {
		return err
	}
	var errs []error
	for name := range old {
		errs = append(errs, os.Remove(filepath.Join(folder, name)))
	}
	for name, text := range got {
		errs = append(errs, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
	}
	return errors.Join(errs...)
}

// expected returns the files next to the input.
func expected(folder string) (map[string]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, entry := range entries {
		if entry.Name() == inputDir {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		files[entry.Name()] = string(text)
	}
	return files, nil
}
