// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/solonode/sno/hack/workspace"
)

// ErrUnknownStep is returned by Select for a name that no step has.
var ErrUnknownStep = errors.New("no such step")

// Findings is the error of a step: one line per finding, ready to print.
type Findings []string

// Error implements error.
func (f Findings) Error() string { return strings.Join(f, "\n") }

func (f Findings) errorOrNil() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// Step is one check of the repository.
type Step struct {
	Name        string
	Description string
	// Run returns the findings, or nil. It may write progress, a line at a time.
	Run func(context.Context, *workspace.Workspace, io.Writer) error
}

// Steps returns all steps, the quick ones first.
func Steps() []Step {
	return []Step{
		{"versions", "every go.mod agrees with hack/versions.yaml, and `go get` in documents with its release", checkVersions},
		{"words", "no machine paths, registry hosts, sleeps, leftovers, terms of hack/glossary.yaml or comments above 120 columns; files have their license, commit subjects are imperative", checkWords},
		{"citations", "every requirement has its code and its test, every number its entry, and every entry a citation", checkCitations},
		{"format", "gofmt has nothing to change", checkFormat},
		{"mutants", "every mutants.yaml parses and every entry still applies", checkMutants},
		{"tidy", "go mod tidy has nothing to change in any module", checkTidy},
		{"boundaries", "pure packages need neither controller-runtime nor informers, and as many other packages as docs/vendoring.md lists", checkBoundaries},
		{"workspace", "all modules build together, on the newest versions", checkWorkspaceBuild},
		{"standalone", "each module builds and vets with GOWORK=off, on its own versions", checkStandaloneBuild},
		{"newest", "conformance builds with GOWORK=off on the newest versions too", checkNewestAlone},
		{"generated", "generated files match the output of the generators", checkGenerated},
		{"api", "hack/api lists the API of every released library, CHANGELOG.md what is gone or changed, and docs/api.md the packages", checkAPI},
		{"docs", "links have targets, something runs every command, and the documents match the roles and reasons in the code", checkDocs},
		{"manifests", "every kustomization renders, with safe pods and flags that exist", checkManifests},
		{"bundle", "the bundle for OLM is valid, and has the Deployment of config/all and exactly the generated rules", checkBundle},
		{"unused", "every function is reached from a program or a test, and every exported name has a user besides tests of its own package", checkUnused},
		{"vulnerabilities", "govulncheck finds no package with a known vulnerability that is not listed with a reason", checkVulnerabilities},
		{"lint", "golangci-lint finds nothing in any module", checkLint},
	}
}

// Select returns the steps with the given names, in the order of Steps, or all without names.
func Select(names []string) ([]Step, error) {
	steps := Steps()
	for _, name := range names {
		if !slices.ContainsFunc(steps, func(s Step) bool { return s.Name == name }) {
			return nil, fmt.Errorf("%w: %q", ErrUnknownStep, name)
		}
	}
	if len(names) == 0 {
		return steps, nil
	}
	return slices.DeleteFunc(steps, func(s Step) bool { return !slices.Contains(names, s.Name) }), nil
}

// Options change what Run prints.
type Options struct {
	// All prints all occurrences of terms of the glossary, not only the first ones.
	All bool
}

// Run runs the steps one after another, reports on w and returns how many failed.
func Run(ctx context.Context, ws *workspace.Workspace, steps []Step, w io.Writer, o Options) (int, error) {
	type row struct {
		step Step
		err  error
		took time.Duration
	}
	var rows []row
	for i, step := range steps {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		fmt.Fprintf(w, "[%d/%d] %s: %s\n", i+1, len(steps), step.Name, step.Description)
		start := time.Now()
		err := step.Run(ctx, ws, w)
		rows = append(rows, row{step, err, time.Since(start)})
		if err != nil {
			text := err.Error()
			if long, is := errors.AsType[*listing](err); is && o.All {
				text = long.all()
			}
			fmt.Fprintf(w, "    %s\n", strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    "))
		}
	}

	failed := 0
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "STEP\tRESULT\tTIME\tWHAT")
	for _, r := range rows {
		result := "ok"
		if r.err != nil {
			result = "FAILED"
			failed++
		}
		fmt.Fprintf(table, "%s\t%s\t%.1f s\t%s\n", r.step.Name, result, r.took.Seconds(), r.step.Description)
	}
	return failed, table.Flush()
}
