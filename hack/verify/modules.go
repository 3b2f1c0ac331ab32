// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/solonode/sno/hack/mutants"
	"github.com/solonode/sno/hack/versions"
	"github.com/solonode/sno/hack/workspace"
)

func checkVersions(ctx context.Context, r repo) error {
	file, err := versions.Read(r.Path("hack/versions.yaml"))
	if err != nil {
		return err
	}
	faults := findings(versions.Compare(file, r.Workspace))
	files, err := r.Files(ctx)
	if err != nil {
		return err
	}
	for _, name := range files {
		dir := path.Dir(name)
		known := strings.HasPrefix(dir, "tools/") || dir == "testcluster/ocm" || slices.ContainsFunc(r.Modules, func(m workspace.Module) bool { return m.Dir == dir })
		switch {
		case strings.Contains(name, "/testdata/"):
		case path.Base(name) == "go.mod" && !known:
			faults = append(faults, name+": go.work does not have this module")
		case path.Ext(name) == ".md" && name != "CHANGELOG.md":
			text, err := os.ReadFile(r.Path(name))
			if err != nil {
				return err
			}
			if versions.SetInDocument(string(text), file.Release.Version) != string(text) {
				faults = append(faults, name+": a command has another version than the release in hack/versions.yaml")
			}
		}
	}
	return faults.orNil()
}

func checkMutants(_ context.Context, r repo) error {
	var faults findings
	for _, m := range r.modules {
		name := m.Dir + "/" + mutants.FileName
		found, err := mutants.Check(r.Path(m.Dir))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			found = append(found, err.Error())
		}
		for _, fault := range found {
			faults = append(faults, name+": "+fault)
		}
	}
	return faults.orNil()
}

// checkTidy checks each module without the workspace, which would hide a missing requirement.
func checkTidy(ctx context.Context, r repo) error {
	var errs []error
	for _, m := range r.modules {
		if err := r.run(ctx, m.Dir, "env", "GOWORK=off", "go", "mod", "tidy", "-diff"); err != nil {
			errs = append(errs, fmt.Errorf("%w\nrun `GOWORK=off go mod tidy` in %s", err, m.Dir))
		}
	}
	return errors.Join(errs...)
}

func checkDeadCode(ctx context.Context, r repo) error {
	out, err := workspace.Output(r.Command(ctx, ".", r.Path("tools/run"), append([]string{"deadcode", "-test"}, r.patterns()...)...))
	if err != nil {
		return err
	}
	// An example without output is compiled and read, and not run.
	return slices.DeleteFunc(lines(out), func(line string) bool { return strings.HasSuffix(line, "unreachable func: Example") }).orNil()
}

func checkLint(ctx context.Context, r repo) error {
	return r.run(ctx, ".", r.Path("tools/run"), append([]string{"golangci-lint", "run", "--allow-parallel-runners"}, r.patterns()...)...)
}
