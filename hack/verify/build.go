// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/solonode/sno/hack/inputs"
	"github.com/solonode/sno/hack/versions"
	"github.com/solonode/sno/hack/workspace"
)

// run runs a command and returns its output as the error when it fails.
func run(ctx context.Context, ws *workspace.Workspace, dir string, env []string, name string, args ...string) error {
	output, err := ws.Command(ctx, dir, env, name, args...).CombinedOutput()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%s: %s %s: %w\n%s", dir, name, strings.Join(args, " "), err, bytes.TrimSpace(output))
	}
	return nil
}

// checkTidy checks each module separately, because the workspace would hide a missing requirement.
func checkTidy(ctx context.Context, ws *workspace.Workspace, _ io.Writer) error {
	var errs []error
	for _, m := range ws.WithCode() {
		if err := run(ctx, ws, m.Dir, []string{"GOWORK=off"}, "go", "mod", "tidy", "-diff"); err != nil {
			errs = append(errs, fmt.Errorf("%s\nrun `GOWORK=off go mod tidy` in %s", firstChanges(err.Error()), m.Dir))
		}
	}
	return errors.Join(errs...)
}

var changedLine = regexp.MustCompile(`^[+-][\ta-z)]`)

// firstChanges shortens a diff to its first changes. Other text is unchanged.
func firstChanges(diff string) string {
	const most = 12
	var kept []string
	inDiff, changes := false, 0
	for line := range strings.Lines(diff) {
		line = strings.TrimRight(line, "\n")
		inDiff = inDiff || strings.HasPrefix(line, "diff ")
		if !inDiff {
			kept = append(kept, line)
			continue
		}
		if !changedLine.MatchString(line) {
			continue
		}
		if changes++; changes <= most {
			kept = append(kept, line)
		}
	}
	if changes > most {
		kept = append(kept, fmt.Sprintf("... and %d more lines", changes-most))
	}
	return strings.Join(kept, "\n")
}

// checkWorkspaceBuild builds all modules of go.work in one command, which is faster and reports the faults of all.
// The linter compiles and vets tests on the same versions.
func checkWorkspaceBuild(ctx context.Context, ws *workspace.Workspace, _ io.Writer) error {
	var patterns []string
	for _, m := range ws.WithCode() {
		if m.InWork {
			patterns = append(patterns, "./"+m.Dir+"/...")
		}
	}
	if len(patterns) == 0 {
		return nil
	}
	env := []string{"GOWORK=" + filepath.Join(ws.Root, "go.work")}
	return linked(ctx, ws, ".", "workspace", env, patterns...)
}

// linked builds packages, and stores the programs in the cache folder, so that unchanged ones are not linked again.
func linked(ctx context.Context, ws *workspace.Workspace, dir, name string, env []string, patterns ...string) error {
	cache, err := workspace.CacheDir()
	if err != nil {
		return err
	}
	folder := filepath.Join(cache, "verify", inputs.Sum(ws.Root)[:12], name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	args := append([]string{"build", "-ldflags=-w", "-buildvcs=false", "-o", folder + "/"}, patterns...)
	err = run(ctx, ws, dir, env, "go", args...)
	if err != nil && strings.Contains(err.Error(), "no main packages to build") {
		return run(ctx, ws, dir, env, "go", append([]string{"build"}, patterns...)...)
	}
	return err
}

// checkStandaloneBuild builds each module as a module that vendors it does.
func checkStandaloneBuild(ctx context.Context, ws *workspace.Workspace, w io.Writer) error {
	var errs []error
	for _, m := range ws.WithCode() {
		fmt.Fprintf(w, "      %s\n", m.Dir)
		err := linked(ctx, ws, m.Dir, m.Name(), workspace.Standalone(), "./...")
		if err == nil {
			err = run(ctx, ws, m.Dir, workspace.Standalone(), "go", "vet", "./...")
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// onBothLegs are modules on the floor that also build alone on the newest versions, because CI of older and newer
// operators imports them.
var onBothLegs = []string{"conformance"}

// checkNewestAlone builds them with GOWORK=off and the requirements of the newest leg. It writes nothing to the
// repository.
func checkNewestAlone(ctx context.Context, ws *workspace.Workspace, _ io.Writer) error {
	pins, err := versions.Read(ws.Path("hack/versions.yaml"))
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range ws.WithCode() {
		if slices.Contains(onBothLegs, m.Dir) {
			errs = append(errs, buildOnNewest(ctx, ws, m, pins))
		}
	}
	return errors.Join(errs...)
}

func buildOnNewest(ctx context.Context, ws *workspace.Workspace, m workspace.Module, pins *versions.File) (err error) {
	text, err := m.File.Format()
	if err != nil {
		return err
	}
	raised, err := modfile.Parse(m.Dir+"/go.mod", text, nil)
	if err != nil {
		return err
	}
	if err := versions.Raise(raised, pins, versions.Newest); err != nil {
		return err
	}
	if text, err = raised.Format(); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "sno-newest-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	file := filepath.Join(folder, "go.mod")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	return run(ctx, ws, m.Dir, []string{"GOWORK=off"}, "go", "build", "-mod=mod", "-modfile="+file, "./...")
}

// checkLint lints the modules of go.work together and the others separately.
func checkLint(ctx context.Context, ws *workspace.Workspace, w io.Writer) error {
	lint := func(dir string, env []string, patterns ...string) error {
		args := append([]string{"golangci-lint", "run", "--allow-parallel-runners"}, patterns...)
		return run(ctx, ws, dir, env, ws.Path("tools/run"), args...)
	}
	var errs []error
	var together []string
	for _, m := range ws.WithCode() {
		if m.InWork {
			together = append(together, "./"+m.Dir+"/...")
			continue
		}
		fmt.Fprintf(w, "      %s\n", m.Dir)
		errs = append(errs, lint(m.Dir, workspace.Standalone(), "./..."))
	}
	if len(together) == 0 {
		return errors.Join(errs...)
	}
	fmt.Fprintf(w, "      %s\n", strings.Join(together, " "))
	errs = append(errs, lint(".", []string{"GOWORK=" + filepath.Join(ws.Root, "go.work")}, together...))
	return errors.Join(errs...)
}
