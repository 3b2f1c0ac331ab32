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

// unconverted are documents whose blocks have no markers yet: they are being rewritten. The check wants a document to
// leave the list when it has no fault.
var unconverted = []string{
	"CONTRIBUTING.md",
	"README.md",
	"auth/README.md",
	"cli/README.md",
	"config/README.md",
	"conformance/README.md",
	"console/README.md",
	"docs/adding-a-check.md",
	"docs/approver.md",
	"docs/ci.md",
	"docs/etcdguard-handover.md",
	"docs/graceful-shutdown.md",
	"docs/install.md",
	"docs/network.md",
	"docs/render.md",
	"docs/upgrades.md",
	"docs/vendoring.md",
	"docs/workers.md",
	"etcdguard/README.md",
	"examples/hosts/authentication-operator/README.md",
	"examples/hosts/console-operator/README.md",
	"examples/hosts/ingress-operator-library-go/README.md",
	"examples/hosts/ingress-operator/README.md",
	"ingress/README.md",
	"machineconfig/README.md",
	"topology/README.md",
}

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
	return check(documents, Targets(string(makefile), string(ci)), unconverted), nil
}

// check is Check without the files.
func check(documents []*Document, targets map[string]bool, unconverted []string) []Fault {
	var faults []Fault
	for _, name := range unconverted {
		if !slices.ContainsFunc(documents, func(d *Document) bool { return d.Name == name }) {
			faults = append(faults, Fault{name, 1, "there is no such document: take it out of the list of unconverted documents"})
		}
	}
	for _, d := range documents {
		found := d.Faults(targets)
		if slices.Contains(unconverted, d.Name) {
			if len(found) == 0 {
				faults = append(faults, Fault{d.Name, 1, "all its commands have markers: take it out of the list of unconverted documents"})
			}
			continue
		}
		faults = append(faults, found...)
	}
	return faults
}
