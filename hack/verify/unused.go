// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/hack/workspace"
)

const unusedFile = "hack/unused.yaml"

type staying struct {
	Why   string   `json:"why"`
	Names []string `json:"names"`
}

// checkUnused checks all modules or none, because a user may be anywhere.
func checkUnused(ctx context.Context, ws *workspace.Workspace, w io.Writer) error {
	if !ws.InFocus(unusedFile) {
		fmt.Fprintln(w, "      not for one module: a user may be in another")
		return nil
	}
	text, err := os.ReadFile(ws.Path(unusedFile))
	if err != nil {
		return err
	}
	var groups []staying
	if err := yaml.UnmarshalStrict(text, &groups); err != nil {
		return fmt.Errorf("%s: %w", unusedFile, err)
	}
	u := users{dead: map[string]string{}, declared: map[string]declaration{}, uses: map[string][]string{}, interfaces: map[string][]*types.Interface{}}
	var together, outside []string
	for _, m := range (&workspace.Workspace{Root: ws.Root, Modules: ws.Modules}).WithCode() {
		if m.InWork {
			together = append(together, m.Dir)
		} else {
			outside = append(outside, m.Dir)
		}
	}
	if err := u.read(ctx, ws, w, ws.Path("go.work"), together); err != nil {
		return err
	}
	if err := u.readOutside(ctx, ws, w, outside); err != nil {
		return err
	}

	found := u.unused()
	maps.Copy(found, u.dead)
	var faults Findings
	for _, group := range groups {
		if group.Why == "" {
			faults = append(faults, fmt.Sprintf("%s: has no reason for %s", unusedFile, strings.Join(group.Names, ", ")))
		}
		for _, pattern := range group.Names {
			before := len(found)
			maps.DeleteFunc(found, func(name, _ string) bool {
				matched, _ := path.Match(pattern, name)
				return matched
			})
			if len(found) == before {
				faults = append(faults, fmt.Sprintf("%s: %s has a user or is gone; delete the entry", unusedFile, pattern))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		faults = append(faults, fmt.Sprintf("%s: %s has no user but tests of its own package; delete it, or add a reason to %s", found[name], name, unusedFile))
	}
	return faults.errorOrNil()
}

// users knows the declarations of the packages that it has read, by names such as patch/apply.Applier.Apply, and their
// users.
type users struct {
	dead     map[string]string
	declared map[string]declaration
	// uses maps a declaration to those that it names. Names used by "" are always used.
	uses       map[string][]string
	interfaces map[string][]*types.Interface
}

type declaration struct {
	file   string
	object types.Object
}

// readOutside loads the modules outside go.work in one workspace, so that common dependencies are analysed once.
func (u *users) readOutside(ctx context.Context, ws *workspace.Workspace, w io.Writer, dirs []string) (err error) {
	if len(dirs) == 0 {
		return nil
	}
	scratch, err := os.MkdirTemp("", "sno-unused-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	file := filepath.Join(scratch, "go.work")
	text := "go " + strings.TrimPrefix(runtime.Version(), "go") + "\n"
	for _, dir := range dirs {
		text += "use " + ws.Path(dir) + "\n"
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	return u.read(ctx, ws, w, file, dirs)
}

func (u *users) read(ctx context.Context, ws *workspace.Workspace, w io.Writer, work string, dirs []string) error {
	fmt.Fprintf(w, "      %s\n", strings.Join(dirs, " "))
	var patterns []string
	for _, dir := range dirs {
		patterns = append(patterns, "./"+dir+"/...")
	}
	// Methods that no call names are used through interfaces, which deadcode analyses.
	args := append([]string{"-test", "-f", `{{range .Funcs}}{{$.Path}}.{{.Name}} {{.Position.File}}{{println}}{{end}}`}, patterns...)
	command := ws.Command(ctx, ".", []string{"GOWORK=" + work}, ws.Path("tools/run"), append([]string{"deadcode"}, args...)...)
	out, err := command.Output()
	if err != nil {
		return fmt.Errorf("deadcode: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		u.dead[strings.TrimPrefix(name, workspace.ModulePrefix)] = file
	}

	loaded, err := packages.Load(&packages.Config{
		Context: ctx, Dir: command.Dir, Env: command.Env, Tests: true,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo,
	}, patterns...)
	if err != nil {
		return fmt.Errorf("load packages: %w", err)
	}
	seen := map[*types.Package]bool{}
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return fmt.Errorf("load packages: %w", p.Errors[0])
		}
		u.addInterfaces(p.Types, seen)
		for _, file := range p.Syntax {
			if err := u.readFile(ws, p, file); err != nil {
				return err
			}
		}
	}
	return nil
}

func (u *users) addInterfaces(p *types.Package, seen map[*types.Package]bool) {
	if seen[p] {
		return
	}
	seen[p] = true
	for _, name := range p.Scope().Names() {
		if object, is := p.Scope().Lookup(name).(*types.TypeName); is {
			if i, is := object.Type().Underlying().(*types.Interface); is {
				for method := range i.Methods() {
					u.interfaces[method.Name()] = append(u.interfaces[method.Name()], i)
				}
			}
		}
	}
	for _, imported := range p.Imports() {
		u.addInterfaces(imported, seen)
	}
}

func (u *users) readFile(ws *workspace.Workspace, p *packages.Package, file *ast.File) error {
	name := p.Fset.Position(file.FileStart).Filename
	relative, err := filepath.Rel(ws.Root, name)
	if err != nil || !filepath.IsLocal(relative) {
		return err // generated by the go command: the main of a test
	}
	isTest := strings.HasSuffix(name, "_test.go")
	own := strings.TrimSuffix(p.PkgPath, "_test")
	record := func(node ast.Node, owners ...string) {
		ast.Inspect(node, func(n ast.Node) bool {
			if id, is := n.(*ast.Ident); is {
				used := nameOf(p.TypesInfo.Uses[id])
				if used != "" && (!isTest || p.TypesInfo.Uses[id].Pkg().Path() != own) {
					for _, owner := range owners {
						u.uses[owner] = append(u.uses[owner], used)
					}
				}
			}
			return true
		})
	}
	declare := func(id *ast.Ident) string {
		object := p.TypesInfo.Defs[id]
		isRoot := isTest || id.Name == "_" || id.Name == "init" || id.Name == "main" && p.Name == "main"
		if isRoot || object == nil {
			return ""
		}
		u.declared[nameOf(object)] = declaration{filepath.ToSlash(relative), object}
		return nameOf(object)
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			record(d, declare(d.Name))
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					record(s, declare(s.Name))
				case *ast.ValueSpec:
					if d.Tok == token.VAR && s.Names[0].Name == "_" && s.Type != nil {
						continue // only asserts that a type implements an interface
					}
					var names []string
					for _, id := range s.Names {
						names = append(names, declare(id))
					}
					record(s, names...)
				}
			}
		}
	}
	return nil
}

// nameOf is empty unless the object is a function, a method or a declaration at the top of a package of the repository.
func nameOf(object types.Object) string {
	if object == nil || object.Pkg() == nil || !strings.HasPrefix(object.Pkg().Path(), workspace.ModulePrefix) {
		return ""
	}
	name := strings.TrimPrefix(object.Pkg().Path(), workspace.ModulePrefix) + "."
	if named := receiverOf(object); named != nil {
		return name + named.Obj().Name() + "." + object.Name()
	}
	if object.Parent() != object.Pkg().Scope() {
		return ""
	}
	return name + object.Name()
}

func receiverOf(object types.Object) *types.Named {
	f, is := object.(*types.Func)
	if !is || f.Signature().Recv() == nil {
		return nil
	}
	t := f.Origin().Signature().Recv().Type()
	if pointer, is := t.(*types.Pointer); is {
		t = pointer.Elem()
	}
	named, _ := t.(*types.Named)
	return named
}

func isOfUnexported(object types.Object) bool {
	named := receiverOf(object)
	return named != nil && !named.Obj().Exported()
}

// unused returns the exported declarations, with their files, that no used declaration uses.
func (u *users) unused() map[string]string {
	used := map[string]bool{}
	var follow func(name string)
	follow = func(name string) {
		if !used[name] {
			used[name] = true
			for _, next := range u.uses[name] {
				follow(next)
			}
		}
	}
	follow("")
	for changed := true; changed; {
		changed = false
		for name, d := range u.declared {
			if method, is := d.object.(*types.Func); is && !used[name] && u.isCalledByInterface(method, used) {
				follow(name)
				changed = true
			}
		}
	}
	found := map[string]string{}
	for name, d := range u.declared {
		if d.object.Exported() && !used[name] && !isOfUnexported(d.object) {
			found[name] = d.file
		}
	}
	return found
}

func (u *users) isCalledByInterface(method *types.Func, used map[string]bool) bool {
	named := receiverOf(method)
	if named == nil || !used[nameOf(named.Obj())] {
		return false
	}
	return slices.Contains([]string{"Error", "Is", "As", "Unwrap"}, method.Name()) || slices.ContainsFunc(u.interfaces[method.Name()], func(i *types.Interface) bool {
		return types.Implements(types.NewPointer(named), i)
	})
}
