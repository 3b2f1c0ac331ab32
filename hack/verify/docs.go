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

// sharedReasons is where the reasons are that modules have in common.
const sharedReasons = "patch/result.go"

// checkDocs follows the links of all documents, and compares those that say the same as the code with the code. A repository without a docs
// folder has nothing to compare.
func checkDocs(ctx context.Context, ws *workspace.Workspace, _ io.Writer) error {
	faults, err := linkFaults(ctx, ws)
	if err != nil {
		return err
	}
	if _, err := os.Stat(ws.Path("docs")); errors.Is(err, os.ErrNotExist) {
		return faults.errorOrNil()
	}
	want, err := rights(ws)
	if err != nil {
		return err
	}
	if got, err := os.ReadFile(ws.Path(rightsFile)); err != nil || string(got) != want {
		faults = append(faults, rightsFile+": is not what the roles say; run make generate")
	}
	inCode, err := reasons(ws)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(ws.Path(reasonsFile))
	if err != nil {
		return err
	}
	return append(faults, reasonFaults(string(text), inCode)...).errorOrNil()
}

// reasonFaults compares the first cells of the rows between the marks with the reasons in the code.
func reasonFaults(text string, inCode []string) []string {
	_, after, begins := strings.Cut(text, reasonsBegin)
	table, _, ends := strings.Cut(after, reasonsEnd)
	if !begins || !ends {
		return []string{fmt.Sprintf("%s: needs %s and %s around its reasons", reasonsFile, reasonsBegin, reasonsEnd)}
	}
	var inDocument, faults []string
	for line := range strings.Lines(table) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		if strings.HasPrefix(line, "| `") {
			for _, match := range inBackticks.FindAllStringSubmatch(cell, -1) {
				inDocument = append(inDocument, match[1])
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

var inBackticks = regexp.MustCompile("`([A-Za-z]+)`")

// reasons are the values of all constants called Reason... in the names.go of the modules with a controller, in order.
func reasons(ws *workspace.Workspace) ([]string, error) {
	all := map[string]bool{}
	for _, m := range ws.Modules {
		if !hasController(ws, m) {
			continue
		}
		found, err := reasonsIn(ws, m.Dir+"/names.go")
		if err != nil {
			return nil, err
		}
		for _, reason := range found {
			all[reason] = true
		}
	}
	return slices.Sorted(maps.Keys(all)), nil
}

// reasonsIn reads the constants of a file. One that is a shared constant has that one's value.
func reasonsIn(ws *workspace.Workspace, name string) (map[string]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), ws.Path(name), nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("reading reasons: %w", err)
	}
	var shared map[string]string
	found := map[string]string{}
	for constant, value := range constants(file) {
		switch value := value.(type) {
		case *ast.BasicLit:
			if found[constant], err = strconv.Unquote(value.Value); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", name, constant, err)
			}
		case *ast.SelectorExpr:
			if shared == nil {
				if shared, err = reasonsIn(ws, sharedReasons); err != nil {
					return nil, err
				}
			}
			if found[constant] = shared[value.Sel.Name]; found[constant] == "" {
				return nil, fmt.Errorf("%s: %s: %s has no such reason", name, constant, sharedReasons)
			}
		default:
			return nil, fmt.Errorf("%s: %s: is neither a text nor a reason of %s", name, constant, sharedReasons)
		}
	}
	return found, nil
}

func constants(file *ast.File) map[string]ast.Expr {
	found := map[string]ast.Expr{}
	for _, declaration := range file.Decls {
		general, is := declaration.(*ast.GenDecl)
		if !is || general.Tok != token.CONST {
			continue
		}
		for _, spec := range general.Specs {
			value, is := spec.(*ast.ValueSpec)
			if !is {
				continue
			}
			for i, name := range value.Names {
				if strings.HasPrefix(name.Name, "Reason") && i < len(value.Values) {
					found[name.Name] = value.Values[i]
				}
			}
		}
	}
	return found
}
