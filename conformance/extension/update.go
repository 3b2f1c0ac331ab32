// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// metadataFolder contains the list of tests.
const metadataFolder = ".openshift-tests-extension"

func metadataFile() string {
	return strings.Join([]string{self.Product, self.Type, self.Name}, "_") + ".json"
}

func (p Program) update() *cobra.Command {
	var folder string
	var compare bool
	c := contract(&cobra.Command{
		Use: "update", Short: "Update the list of tests; fail if one is missing", Args: cobra.NoArgs,
		Long: "Write the list of tests into " + metadataFolder + ". A test of the old list must still exist, by its name or as the original name of another test.\n" +
			"To remove a test, delete it from the file in the same change.",
		RunE: func(*cobra.Command, []string) error {
			file := filepath.Join(folder, metadataFolder, metadataFile())
			now := specs(p.Catalogue)
			before, err := readSpecs(file)
			if err != nil {
				return err
			}
			if err := missingTests(before, now); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			return writeSpecs(file, now, compare)
		},
	})
	c.Flags().StringVar(&folder, "dir", ".", "folder that contains "+metadataFolder)
	c.Flags().BoolVar(&compare, "check", false, "write nothing; fail if the file is not up to date")
	return c
}

func readSpecs(file string) ([]spec, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the list of tests: %w", err)
	}
	var all []spec
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("%s is not a list of tests: %w", file, err)
	}
	return all, nil
}

// missingTests returns an error for each old test that is neither in the catalogue nor the original name of another
// test.
func missingTests(before, now []spec) error {
	known := map[string]bool{}
	for _, s := range now {
		known[s.Name] = true
		known[s.OriginalName] = true
	}
	var errs []error
	for _, s := range before {
		if !known[s.Name] && (s.OriginalName == "" || !known[s.OriginalName]) {
			errs = append(errs, fmt.Errorf("%w: test %q is missing: if its title has changed, add the old one to titles in specs.go", errFailed, s.Name))
		}
	}
	return errors.Join(errs...)
}

func writeSpecs(file string, now []spec, compare bool) error {
	var data bytes.Buffer
	if err := encodeOne(&data, now); err != nil {
		return err
	}
	if compare {
		old, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(old, data.Bytes()) {
			return fmt.Errorf("%w: %s is not up to date: run `sno-tests update`", errFailed, file)
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("write the list of tests: %w", err)
	}
	if err := os.WriteFile(file, data.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the list of tests: %w", err)
	}
	return nil
}
