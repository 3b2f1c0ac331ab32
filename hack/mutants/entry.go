// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// ErrDoesNotApply is wrapped when an entry cannot be tried: its text is gone or occurs more than once, the result
// does not compile, or its test does not exist or does not pass without the mutation.
var ErrDoesNotApply = errors.New("does not apply")

// FileName is the name of the file in the folder of a module.
const FileName = "mutants.yaml"

// Entry is one mutant of a module.
type Entry struct {
	// Name is unique within the module, for example "worker-instead-of-master".
	Name string `json:"name"`
	// File is relative to the module. Replace is text that occurs exactly once in it, and is replaced by With.
	File    string `json:"file"`
	Replace string `json:"replace"`
	With    string `json:"with"`
	// Package is the folder of the test, relative to the module, such as "." or "../testcluster/modules/ingress", and Test
	// the regular expression of `go test -run` for the test that must fail.
	Package string `json:"package"`
	Test    string `json:"test"`
	// Why is the effect of the mutation on a cluster.
	Why string `json:"why"`
}

// Read parses and validates a mutants.yaml. Unknown keys are errors.
func Read(name string) ([]Entry, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	if err := yaml.UnmarshalStrict(data, &entries); err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, errors.New("it has no entries")
	}
	seen := map[string]bool{}
	for i, entry := range entries {
		err := entry.validate()
		if err == nil && seen[entry.Name] {
			err = errors.New("the name is taken")
		}
		if err != nil {
			return nil, fmt.Errorf("entry %d (%q): %w", i+1, entry.Name, err)
		}
		seen[entry.Name] = true
	}
	return entries, nil
}

func (e Entry) validate() error {
	switch {
	case slices.Contains([]string{e.Name, e.File, e.Replace, e.Package, e.Test, e.Why}, ""):
		return errors.New("only with may be empty")
	case e.Replace == e.With:
		return errors.New("replace and with are the same")
	case !filepath.IsLocal(e.File) || strings.HasSuffix(e.File, "_test.go"):
		return fmt.Errorf("file %q must be inside the module and no test", e.File)
	case filepath.IsAbs(e.Package) || strings.Contains(e.Package, "..."):
		return fmt.Errorf("package %q must be one package, relative to the module, such as . or ./controller", e.Package)
	}
	return nil
}

// Check returns one line per entry of the module in moduleDir that does not apply, without running anything.
func Check(moduleDir string) ([]string, error) {
	entries, err := Read(filepath.Join(moduleDir, FileName))
	if err != nil {
		return nil, err
	}
	var faults []string
	for _, entry := range entries {
		_, err := entry.mutate(moduleDir)
		tests, _ := filepath.Glob(filepath.Join(moduleDir, entry.Package, "*_test.go")) // it fails only for bad patterns
		if err == nil && len(tests) == 0 {
			err = fmt.Errorf("%w: package %s has no tests", ErrDoesNotApply, entry.Package)
		}
		if err != nil {
			faults = append(faults, fmt.Sprintf("%s: %v", entry.Name, err))
		}
	}
	return faults, nil
}

// mutate returns the mutated source.
func (e Entry) mutate(moduleDir string) (string, error) {
	source, err := os.ReadFile(filepath.Join(moduleDir, e.File))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrDoesNotApply, err)
	}
	if n := strings.Count(string(source), e.Replace); n != 1 {
		return "", fmt.Errorf("%w: the text to replace occurs %d times in %s, must occur once", ErrDoesNotApply, n, e.File)
	}
	return strings.Replace(string(source), e.Replace, e.With, 1), nil
}
