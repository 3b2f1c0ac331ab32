// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/solonode/sno/hack/workspace"
)

// repo is the repository, and the modules that are checked.
type repo struct {
	*workspace.Workspace
	modules []workspace.Module
}

// findings is the error of a step: one line per finding.
type findings []string

// Error implements error.
func (f findings) Error() string { return strings.Join(f, "\n") }

func (f findings) orNil() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// lines returns the lines of a command's output.
func lines(out []byte) findings {
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
}

// Step is one check of the repository.
type Step struct {
	Name, Description string
	// whole steps check the repository, and do not run for single modules.
	whole bool
	run   func(context.Context, repo) error
}

// Steps returns all steps, the quick ones first.
func Steps() []Step {
	return []Step{
		{"versions", "go.work has all modules, and every go.mod and `go get` in documents agrees with hack/versions.yaml", true, checkVersions},
		{"paths", "no file has a path of one machine or the host of a package registry", true, checkPaths},
		{"citations", "every cited number has an entry, and every requirement its code and its test", true, checkCitations},
		{"mutants", "every entry of a mutants.yaml still applies", false, checkMutants},
		{"tidy", "go mod tidy has nothing to change", false, checkTidy},
		{"boundaries", "modules depend on no others than they may, and pure packages on neither controller-runtime nor informers", false, checkBoundaries},
		{"generated", "generated files match the output of the generators", false, checkGenerated},
		{"docs", "links have targets, something runs every command, and the documents have the reasons in the code", true, checkDocs},
		{"manifests", "every kustomization renders, with safe pods and flags that exist", true, checkManifests},
		{"bundle", "the bundle for OLM and its catalogue are valid", true, checkBundle},
		{"deadcode", "every function is reached from a program or a test", true, checkDeadCode},
		{"vulnerabilities", "govulncheck finds no vulnerable package that hack/vulnerabilities.yaml does not accept", true, checkVulnerabilities},
		{"lint", "everything compiles, and golangci-lint finds nothing", false, checkLint},
	}
}

// Run runs the steps with the given names, or all, for the modules or all. It reports on w, and returns an error if one
// fails.
func Run(ctx context.Context, ws *workspace.Workspace, names, modules []string, w io.Writer) error {
	selected, err := ws.Select(modules...)
	if err != nil {
		return err
	}
	steps := Steps()
	for _, name := range names {
		if !slices.ContainsFunc(steps, func(s Step) bool { return s.Name == name }) {
			return fmt.Errorf("no step %q", name)
		}
	}
	steps = slices.DeleteFunc(steps, func(s Step) bool {
		return len(names) > 0 && !slices.Contains(names, s.Name) || len(modules) > 0 && s.whole
	})
	return runAll(ctx, repo{ws, selected}, steps, w)
}

func runAll(ctx context.Context, r repo, steps []Step, w io.Writer) error {
	var summary strings.Builder
	failed := 0
	for i, step := range steps {
		fmt.Fprintf(w, "[%d/%d] %s: %s\n", i+1, len(steps), step.Name, step.Description)
		start, result := time.Now(), "ok"
		if err := step.run(ctx, r); err != nil {
			result = "FAILED"
			failed++
			fmt.Fprintf(w, "    %s\n", strings.ReplaceAll(strings.TrimRight(err.Error(), "\n"), "\n", "\n    "))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		fmt.Fprintf(&summary, "%-16s %-6s %6.1f s\n", step.Name, result, time.Since(start).Seconds())
	}
	fmt.Fprintf(w, "\n%s", &summary)
	if failed > 0 {
		return fmt.Errorf("%d of %d steps failed", failed, len(steps))
	}
	return nil
}

// run runs a command and returns its output as the error when it fails.
func (r repo) run(ctx context.Context, dir, name string, args ...string) error {
	if out, err := r.Command(ctx, dir, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %s %s: %w\n%s", dir, name, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// patterns are the packages of the modules, relative to the root.
func (r repo) patterns() []string {
	var patterns []string
	for _, m := range r.modules {
		patterns = append(patterns, "./"+m.Dir+"/...")
	}
	return patterns
}
