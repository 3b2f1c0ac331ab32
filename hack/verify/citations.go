// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// The documents with numbered entries.
const (
	requirementsFile = "docs/requirements.md"
	upstreamFile     = "docs/upstream.md"
)

var (
	// entry matches the number of an entry and its mark, without which it has code and a test.
	entry = regexp.MustCompile(`(?m)^- <a id="[^"]*"></a>\*\*([RU]-[A-Z]+-\d+)\*\*(?: \(([a-z]+)\))?`)
	cited = regexp.MustCompile(`\b[RU]-[A-Z]+-\d+\b`)
	// notCode matches modules that test others, and hack.
	notCode = regexp.MustCompile(`^(conformance|e2e|hack|testcluster)/`)
	isTest  = regexp.MustCompile(`^(conformance|e2e|testcluster)/|/testdata/|_test\.go$`)
)

func checkCitations(ctx context.Context, r repo) error {
	names, err := r.Files(ctx)
	if err != nil {
		return err
	}
	files := map[string]string{}
	for _, name := range names {
		if slices.Contains([]string{".go", ".yaml", ".yml", ".md"}, path.Ext(name)) {
			text, err := os.ReadFile(r.Path(name))
			if err != nil {
				return err
			}
			files[name] = string(text)
		}
	}
	return citationFaults(files).orNil()
}

// citationFaults takes the texts of files by their names. Numbers of the topic EXAMPLE are test data.
func citationFaults(files map[string]string) (faults findings) {
	code, tests, entries := map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, name := range []string{requirementsFile, upstreamFile} {
		for _, match := range entry.FindAllStringSubmatch(files[name], -1) {
			if _, doubled := entries[match[1]]; doubled {
				faults = append(faults, fmt.Sprintf("%s: has the entry %s twice", name, match[1]))
			}
			entries[match[1]] = match[2]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := files[name]
		for _, number := range cited.FindAllString(text, -1) {
			if _, known := entries[number]; !known && !strings.Contains(number, "-EXAMPLE-") {
				faults = append(faults, fmt.Sprintf("%s: cites %s, which has no entry", name, number))
			}
		}
		isGo := path.Ext(name) == ".go"
		if isGo {
			_, text, _ = strings.Cut("\n"+text, "\npackage ") // a comment of a package proves nothing
		}
		for _, number := range cited.FindAllString(text, -1) {
			switch {
			case path.Base(name) == "doc.go" && isGo, path.Ext(name) == ".md":
			case isTest.MatchString(name):
				tests[number] = true
			case isGo && !notCode.MatchString(name):
				code[number] = true
			}
		}
	}
	for _, number := range slices.Sorted(maps.Keys(entries)) {
		fault := func(holds bool, text string) {
			if !holds {
				faults = append(faults, number+": "+text)
			}
		}
		switch mark := entries[number]; {
		case strings.HasPrefix(number, "U-"), mark == "planned", mark == "documentation":
		case mark == "tests":
			fault(tests[number], "no test cites it")
		case mark == "", mark == "partly":
			fault(code[number], "no code cites it; an entry that needs none has the mark (planned), (tests) or (documentation)")
			fault(tests[number], "no test cites it")
		default:
			fault(false, "has the mark "+mark+", which is none of planned, partly, tests and documentation")
		}
	}
	return faults
}
