// SPDX-License-Identifier: Apache-2.0

package guides

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// written are folders of documents that a program writes from the help of commands. Their examples are checked where
// the help is.
var written = []string{"docs/kubectl-sno"}

// Documents reads all Markdown files below root that people write, except data of tests.
func Documents(root string) ([]*Document, error) {
	var all []*Document
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != "." && strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || slices.Contains(written, name) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".md" {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		all = append(all, Parse(name, string(text)))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the documents: %w", err)
	}
	return all, nil
}

// Check returns what is wrong with the markers and blocks of all documents below root.
func Check(root string) ([]Fault, error) {
	documents, err := Documents(root)
	if err != nil {
		return nil, err
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return nil, fmt.Errorf("read the targets of make: %w", err)
	}
	ci, err := os.ReadFile(filepath.Join(root, ".ci", "run"))
	if err != nil {
		return nil, fmt.Errorf("read what CI runs: %w", err)
	}
	known := Targets(string(makefile), string(ci))
	var faults []Fault
	for _, d := range documents {
		faults = append(faults, d.Faults(known)...)
	}
	return faults, nil
}
