package extension

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/solonode/sno/conformance/checks"
)

// What is generated from the catalogue is in the repository, so that a change of the catalogue is seen in review.

func TestConformancePage(t *testing.T) {
	golden(t, filepath.Join("..", "..", "docs", "conformance.md"), Program{Catalogue: checks.Catalogue()}.markdown())
}

// A test that vanishes without an heir is not written over by -update: see update.
func TestTestsOfTheLastRelease(t *testing.T) {
	file := filepath.Join(metadataFolder, metadataFile())
	now := specs(checks.Catalogue())
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
