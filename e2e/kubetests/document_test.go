// SPDX-License-Identifier: Apache-2.0

package kubetests

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// document is the file with the list of skips, relative to the root of the repository.
const document = "docs/kubernetes-conformance.md"

const (
	begin = "<!-- skips: begin -->\n"
	end   = "<!-- skips: end -->"
)

// errDocument is returned when the document has no place for the list.
var errDocument = errors.New("no place for the list of skips")

// writeList returns the document with the current list between its markers.
func writeList(text []byte, all []Test, skips []Skip) ([]byte, error) {
	before, rest, found := bytes.Cut(text, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !found || !closed {
		return nil, fmt.Errorf("%w: %s needs the lines %q and %q", errDocument, document, begin, end)
	}
	return bytes.Join([][]byte{before, []byte(begin), []byte(list(all, skips)), []byte(end), after}, nil), nil
}

// titles are the headings of the kinds.
func titles() map[Kind]string {
	return map[Kind]string{
		OneNode:      "Differences from a cluster of several nodes",
		Disturbs:     "Tests that would disturb the modules or other tests on the only node",
		Lacks:        "Tests that need what these nodes lack",
		Image:        "Tests that need another image",
		NeedsModules: "Not skipped: tests that pass only with the modules on",
	}
}

// list has the short names, because those of reports are longer than a line.
func list(all []Test, skips []Skip) string {
	var b strings.Builder
	names := map[string]string{}
	for _, test := range all {
		names[test.Codename] = test.Name
	}
	run, _ := Split(all, skips, Kinds()...)
	fmt.Fprintf(&b, "\nOf %d tests %d run.\n\n| reason | tests skipped |\n|---|---|\n", len(all), len(run))
	for _, kind := range Kinds() {
		fmt.Fprintf(&b, "| %s | %d |\n", titles()[kind], count(skips, kind))
	}
	for _, kind := range append(Kinds(), NeedsModules) {
		if count(skips, kind) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n", titles()[kind])
		for _, skip := range skips {
			if skip.Kind != kind {
				continue
			}
			reason := skip.Reason
			if skip.Image != "" {
				reason = "`" + skip.Image + "`:"
			}
			fmt.Fprintf(&b, "\n%s\n\n", reason)
			for _, name := range skip.Tests {
				fmt.Fprintf(&b, "- %s\n", names[name])
			}
		}
	}
	b.WriteString("\n")
	return b.String()
}

var update = flag.Bool("update", false, "update the list in the document")

// TestDocument compares the document with skips.yaml.
func TestDocument(t *testing.T) {
	all, err := All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	skips, err := Skips()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("..", "..", filepath.FromSlash(document))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, err := writeList(text, all, skips)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, want, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("go test ./kubetests -update updates it (-want +got):\n%s", diff)
	}
	if _, err := writeList([]byte("# no markers"), all, skips); !errors.Is(err, errDocument) {
		t.Errorf("a document without markers: %v", err)
	}
}
