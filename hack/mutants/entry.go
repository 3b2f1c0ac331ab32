// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// ErrInvalid is wrapped by every error about the contents of a mutants.yaml.
var ErrInvalid = errors.New("invalid mutants file")

// ErrDoesNotApply is wrapped when an entry cannot be tried: its text is gone or occurs more than once, the result
// does not compile, or its test does not exist or does not pass without the mutation.
var ErrDoesNotApply = errors.New("does not apply")

// FileName is the name of the file in the folder of a module.
const FileName = "mutants.yaml"

// Entry is one mutant of a module.
type Entry struct {
	// Name is short and unique within the module, for example "worker-instead-of-master".
	Name string `json:"name"`
	File string `json:"file"`
	// Replace is the exact text to replace by With; it must occur exactly once in File.
	Replace string `json:"replace"`
	With    string `json:"with"`
	// Package is the folder of the test, relative to the module ("." or "./controller"), and Test the regular
	// expression of `go test -run` for the test that must fail.
	Package string `json:"package,omitempty"`
	Test    string `json:"test,omitempty"`
	// Command replaces Package and Test: it runs at the root of a copy of the repository and must fail, for example [make,
	// run, ONCE=1].
	Command []string `json:"command,omitempty"`
	// Output is an optional regular expression for the output of the failing test or command, so that other failures do
	// not count.
	Output string `json:"output,omitempty"`
	// Why is the effect of the mutation on a cluster.
	Why string `json:"why"`
}

// Read parses and validates the mutants.yaml of a module. Unknown keys are errors.
func Read(name string) ([]Entry, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	if err := yaml.UnmarshalStrict(data, &entries); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("%w: it has no entries", ErrInvalid)
	}
	seen := map[string]bool{}
	for i, entry := range entries {
		if err := entry.validate(); err != nil {
			return nil, fmt.Errorf("%w: entry %d (%q): %w", ErrInvalid, i+1, entry.Name, err)
		}
		if seen[entry.Name] {
			return nil, fmt.Errorf("%w: entry %d (%q): the name is taken", ErrInvalid, i+1, entry.Name)
		}
		seen[entry.Name] = true
	}
	return entries, nil
}

func (e Entry) validate() error {
	for _, field := range []struct{ name, value string }{
		{"name", e.Name}, {"file", e.File}, {"replace", e.Replace}, {"why", e.Why},
	} {
		if strings.TrimSpace(field.value) == "" {
			return fmt.Errorf("%s is empty", field.name)
		}
	}
	if e.Replace == e.With {
		return errors.New("replace and with are the same")
	}
	if !filepath.IsLocal(filepath.FromSlash(e.File)) {
		return fmt.Errorf("file %q must be inside the module", e.File)
	}
	if strings.HasSuffix(e.File, "_test.go") {
		return fmt.Errorf("file %q is a test; a mutant changes what is tested", e.File)
	}
	switch {
	case len(e.Command) > 0 && (e.Package != "" || e.Test != ""):
		return errors.New("command excludes package and test")
	case len(e.Command) == 0 && (e.Package == "" || e.Test == ""):
		return errors.New("needs package and test, or command")
	}
	if e.Package != "" && (strings.Contains(e.Package, "...") || !filepath.IsLocal(filepath.FromSlash(e.Package))) {
		return fmt.Errorf("package %q must be one package inside the module, such as . or ./controller", e.Package)
	}
	for _, pattern := range append(strings.Split(e.Test, "/"), e.Output) {
		if _, err := regexp.Compile(pattern); err != nil {
			return err
		}
	}
	return nil
}

// packageDir returns the folder of the test relative to the module, cleaned, so that "./x" and "x" are the same
// package.
func (e Entry) packageDir() string { return path.Clean(e.Package) }

// Apply returns the mutated source. It fails with ErrDoesNotApply unless Replace occurs exactly once.
func (e Entry) Apply(source string) (string, error) {
	switch n := strings.Count(source, e.Replace); n {
	case 1:
		return strings.Replace(source, e.Replace, e.With, 1), nil
	case 0:
		return "", fmt.Errorf("%w: the text to replace is not in %s", ErrDoesNotApply, e.File)
	default:
		return "", fmt.Errorf("%w: the text to replace occurs %d times in %s, must occur once", ErrDoesNotApply, n, e.File)
	}
}

// Check returns one line per entry of the module in moduleDir that does not apply, without running anything.
func Check(moduleDir string) ([]string, error) {
	entries, err := Read(filepath.Join(moduleDir, FileName))
	if err != nil {
		return nil, err
	}
	var faults []string
	for _, entry := range entries {
		if _, err := entry.mutate(moduleDir); err != nil {
			faults = append(faults, fmt.Sprintf("%s: %v", entry.Name, err))
			continue
		}
		if entry.Package == "" {
			continue
		}
		if tests, err := filepath.Glob(filepath.Join(moduleDir, entry.packageDir(), "*_test.go")); err != nil || len(tests) == 0 {
			faults = append(faults, fmt.Sprintf("%s: %v: package %s has no tests", entry.Name, ErrDoesNotApply, entry.Package))
		}
	}
	return faults, nil
}

func (e Entry) mutate(moduleDir string) (string, error) {
	source, err := os.ReadFile(filepath.Join(moduleDir, filepath.FromSlash(e.File)))
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%w: there is no file %s", ErrDoesNotApply, e.File)
	}
	if err != nil {
		return "", err
	}
	return e.Apply(string(source))
}
