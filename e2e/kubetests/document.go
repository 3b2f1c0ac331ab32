// SPDX-License-Identifier: Apache-2.0

package kubetests

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Document is the file with the list of skips, relative to the root of the repository.
const Document = "docs/kubernetes-conformance.md"

const (
	begin = "<!-- skips: begin -->\n"
	end   = "<!-- skips: end -->"
)

// ErrDocument is returned when the document has no place for the list.
var ErrDocument = errors.New("no place for the list of skips")

// WriteList returns the document with the current list between its markers.
func WriteList(document []byte, all []Test, skips []Skip) ([]byte, error) {
	before, rest, found := bytes.Cut(document, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !found || !closed {
		return nil, fmt.Errorf("%w: %s needs the lines %q and %q", ErrDocument, Document, begin, end)
	}
	return bytes.Join([][]byte{before, []byte(begin), []byte(list(all, skips)), []byte(end), after}, nil), nil
}

// titles are the headings of the kinds.
func titles() map[Kind]string {
	return map[Kind]string{
		OneNode:  "Differences from a cluster of several nodes",
		Disturbs: "Tests that would disturb the modules or other tests on the only node",
		Lacks:    "Tests that need what these nodes lack",
		Image:    "Tests that need another image",
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
	for _, kind := range Kinds() {
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
