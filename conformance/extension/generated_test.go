// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/solonode/sno/conformance/catalogue"
)

// Files that are generated from the catalogue are committed, so that reviews show its changes.

func TestConformancePage(t *testing.T) {
	golden(t, filepath.Join("..", "..", "docs", "conformance.md"), Program{Catalogue: catalogue.All()}.markdown())
}

// -update does not remove a test without a successor: see update.
func TestTestsOfTheLastRelease(t *testing.T) {
	file := filepath.Join(metadataFolder, metadataFile())
	now := specs(catalogue.All())
	before, err := readSpecs(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := missingTests(before, now); err != nil {
		t.Fatal(err)
	}
	var data bytes.Buffer
	if err := encodeOne(&data, now); err != nil {
		t.Fatal(err)
	}
	golden(t, file, data.Bytes())
}
