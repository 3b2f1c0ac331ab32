// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/solonode/sno/hack/workspace"
)

// reasonsFile explains the reason constants of all modules, between reasonsBegin and reasonsEnd.
const (
	reasonsFile  = "docs/troubleshooting.md"
	reasonsBegin = "<!-- reasons -->"
	reasonsEnd   = "<!-- end of reasons -->"
)

const sharedReasons = "patch/result.go"

// readmeHeadings are the level-2 headings of the README of a module with a controller.
var readmeHeadings = []string{
	"What it does for you", "What it changes", "Run it", "Undo it", "Vendor it", "Conditions and reasons", "Metrics", "Flags", "Known limits",
}

// checkDocs checks the links of all documents and that something runs each of their commands, and compares with the
// code the documents that repeat it. A repository without a docs folder passes.
func checkDocs(ctx context.Context, ws *workspace.Workspace, _ io.Writer) error {
	faults, err := linkFaults(ctx, ws)
	if err != nil {
		return err
	}
	commands, err := guideFaults(ctx, ws)
	if err != nil {
		return err
	}
	faults = append(faults, commands...)
	if _, err := os.Stat(ws.Path("docs")); errors.Is(err, os.ErrNotExist) {
		return faults.errorOrNil()
	}
	want, err := rights(ws)
	if err != nil {
		return err
	}
	if got, err := os.ReadFile(ws.Path(rightsFile)); err != nil || string(got) != want {
		faults = append(faults, rightsFile+": does not match the roles; run make generate")
	}
	text, err := os.ReadFile(ws.Path(reasonsFile))
	if err != nil {
		return err
	}
	shared, err := reasonsIn(ws, sharedReasons)
	if err != nil {
		return err
	}
	all, readmes := slices.Clone(shared), map[string][]string{}
	for _, m := range ws.Modules {
		if !hasController(ws, m) {
			continue
		}
		own, err := reasonsIn(ws, m.Dir+"/names.go")
		if err != nil {
			return err
		}
		readme, err := os.ReadFile(ws.Path(m.Dir + "/README.md"))
		if err != nil {
			return err
		}
		faults = append(faults, readmeFaults(m.Dir, string(readme), own, shared)...)
		readmes[m.Dir] = readmeReasons(string(readme))
		all = append(all, own...)
	}
	slices.Sort(all)
	return append(faults, reasonFaults(string(text), slices.Compact(all), readmes)...).errorOrNil()
}

// readmeFaults compares a module's README with the headings that all have, and its first table of reasons with its
// constants, in order. The table may also have shared reasons.
func readmeFaults(dir, readme string, own, shared []string) []string {
	var faults, headings []string
	for line := range strings.Lines(readme) {
		if heading, is := strings.CutPrefix(line, "## "); is {
			headings = append(headings, strings.TrimSpace(heading))
		}
	}
	if !slices.Equal(headings, readmeHeadings) {
		faults = append(faults, fmt.Sprintf("%s/README.md: has the headings %q; all modules with a controller have %q", dir, headings, readmeHeadings))
	}
	rows := readmeReasons(readme)
	if !slices.Equal(slices.DeleteFunc(slices.Clone(rows), func(r string) bool { return !slices.Contains(own, r) && slices.Contains(shared, r) }), own) {
		faults = append(faults, fmt.Sprintf("%s/README.md: has the reasons %v; names.go has %v, and %s more", dir, rows, own, sharedReasons))
	}
	return faults
}

func readmeReasons(readme string) (reasons []string) {
	_, table, _ := strings.Cut(readme, "\n| reason | in force |")
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		for _, match := range inBackticks.FindAllStringSubmatch(cell, -1) {
			reasons = append(reasons, match[1])
		}
	}
	return reasons
}

// reasonFaults compares the rows between the marks: the first cells with the reasons in the code, and the second
// cells, which are modules, with the reasons in the modules' READMEs.
func reasonFaults(text string, inCode []string, readmes map[string][]string) []string {
	_, after, begins := strings.Cut(text, reasonsBegin)
	table, _, ends := strings.Cut(after, reasonsEnd)
	if !begins || !ends {
		return []string{fmt.Sprintf("%s: needs %s and %s around its reasons", reasonsFile, reasonsBegin, reasonsEnd)}
	}
	var inDocument, faults []string
	for line := range strings.Lines(table) {
		cell, rest, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		modules, _, _ := strings.Cut(rest, "|")
		if strings.HasPrefix(line, "| `") {
			for _, match := range inBackticks.FindAllStringSubmatch(cell, -1) {
				inDocument = append(inDocument, match[1])
				faults = append(faults, moduleFaults(match[1], strings.TrimSpace(modules), readmes)...)
			}
		}
	}
	for _, reason := range inCode {
		if !slices.Contains(inDocument, reason) {
			faults = append(faults, reasonsFile+": does not explain the reason "+reason)
		}
	}
	for _, reason := range inDocument {
		if !slices.Contains(inCode, reason) {
			faults = append(faults, reasonsFile+": explains "+reason+", which no module has")
		}
	}
	return faults
}

// moduleFaults compares the modules of a reason ("all", "all but a, b" or "a, b") with those that have it in their
// README.
func moduleFaults(reason, modules string, readmes map[string][]string) (faults []string) {
	list, but := strings.CutPrefix(modules, "all but ")
	for _, dir := range slices.Sorted(maps.Keys(readmes)) {
		want := modules == "all" || slices.Contains(strings.Split(list, ", "), dir) != but
		if slices.Contains(readmes[dir], reason) != want {
			faults = append(faults, fmt.Sprintf("%s: has the reason %s for the modules %q; %s/README.md has it: %t", reasonsFile, reason, modules, dir, !want))
		}
	}
	return faults
}

var inBackticks = regexp.MustCompile("`([A-Za-z]+)`")

// reasonsIn returns the values of the constants Reason... of a file, in order. One that is a shared constant has that
// one's value.
func reasonsIn(ws *workspace.Workspace, name string) ([]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), ws.Path(name), nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("reading reasons: %w", err)
	}
	var found []string
	for _, declaration := range file.Decls {
		general, is := declaration.(*ast.GenDecl)
		if !is || general.Tok != token.CONST {
			continue
		}
		for _, spec := range general.Specs {
			value, is := spec.(*ast.ValueSpec)
			if !is || !strings.HasPrefix(value.Names[0].Name, "Reason") || len(value.Values) == 0 {
				continue
			}
			constant, reason := value.Names[0].Name, ""
			switch value := value.Values[0].(type) {
			case *ast.BasicLit:
				if reason, err = strconv.Unquote(value.Value); err != nil {
					return nil, fmt.Errorf("%s: %s: %w", name, constant, err)
				}
			case *ast.SelectorExpr:
				// The name of a shared reason ends with its value.
				shared, err := reasonsIn(ws, sharedReasons)
				if err != nil {
					return nil, err
				}
				if reason = strings.TrimPrefix(value.Sel.Name, "Reason"); !slices.Contains(shared, reason) {
					return nil, fmt.Errorf("%s: %s: %s has no such reason", name, constant, sharedReasons)
				}
			default:
				return nil, fmt.Errorf("%s: %s: is neither a text nor a reason of %s", name, constant, sharedReasons)
			}
			found = append(found, reason)
		}
	}
	return found, nil
}
