// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/mod/semver"
	"golang.org/x/tools/go/packages"

	"github.com/solonode/sno/hack/workspace"
)

// ErrRefused is wrapped by the error about incompatible changes in a version that promises compatibility.
var ErrRefused = errors.New("cannot release")

// private matches packages without a promise (docs/api.md), which only programs of this repository import.
var private = regexp.MustCompile(`^([^/]+/(controller|decision|internal)|approver/(approve|kubelet)|conformance/extension|patch/(admission|golden)|topology/topologytest)(/|$)`)

// compareAPI prints the differences of each library from its last release, and refuses incompatible ones where the next
// version promises compatibility: in v0 another minor version may have them, from v1 on none. As long as the commit has
// the version of the last release, the next one is not known, and nothing is refused.
func compareAPI(ctx context.Context, r repository, commit, scratch, next string, dirs []string, out io.Writer) error {
	tags, err := r.git(ctx, "tag", "--list")
	if err != nil {
		return err
	}
	trees := map[string]bool{}
	load := func(revision, dir string) (*apidiff.Module, error) {
		tree := filepath.Join(scratch, strings.ReplaceAll(revision, "/", "-"))
		if !trees[tree] {
			if err := r.checkOut(ctx, revision, tree); err != nil {
				return nil, err
			}
			trees[tree] = true
		}
		return loadAPI(ctx, tree, dir)
	}
	var faults []error
	for _, dir := range dirs {
		last := lastOf(strings.Fields(tags), dir)
		if last == "" {
			fmt.Fprintf(out, "    %s: no earlier release to compare with\n", dir)
			continue
		}
		before, err := load(dir+"/"+last, dir)
		if err != nil {
			return err
		}
		after, err := load(commit, dir)
		if err != nil {
			return err
		}
		report := apidiff.ModuleChanges(before, after)
		fmt.Fprintf(out, "    %s since %s: %d changes\n", dir, last, len(report.Changes))
		if err := report.Text(out); err != nil {
			return err
		}
		breaks := false
		for _, change := range report.Changes {
			breaks = breaks || !change.Compatible
		}
		if breaks && semver.Compare(next, last) > 0 && mustBeCompatible(last, next) {
			faults = append(faults, fmt.Errorf("%w: %s has incompatible changes since %s, which %s may not have", ErrRefused, dir, last, next))
		}
	}
	return errors.Join(faults...)
}

// loadAPI loads the public packages of a module in a tree.
func loadAPI(ctx context.Context, tree, dir string) (*apidiff.Module, error) {
	folder := filepath.Join(tree, filepath.FromSlash(dir))
	loaded, err := packages.Load(&packages.Config{
		Context: ctx, Dir: folder, Env: append(os.Environ(), "PWD="+folder, "GOWORK=off"),
		Mode: packages.NeedName | packages.NeedImports | packages.NeedTypes | packages.NeedExportFile,
	}, "./...")
	if err != nil {
		return nil, fmt.Errorf("load packages of %s: %w", dir, err)
	}
	module := &apidiff.Module{Path: workspace.ModulePrefix + dir}
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return nil, fmt.Errorf("load packages of %s: %w", dir, p.Errors[0])
		}
		if p.Name != "main" && !private.MatchString(strings.TrimPrefix(p.PkgPath, workspace.ModulePrefix)) {
			module.Packages = append(module.Packages, p.Types)
		}
	}
	return module, nil
}

// lastOf returns the highest version of a module, or "".
func lastOf(tags []string, dir string) (last string) {
	for _, tag := range tags {
		if version, is := strings.CutPrefix(tag, dir+"/"); is && semver.IsValid(version) && (last == "" || semver.Compare(version, last) > 0) {
			last = version
		}
	}
	return last
}

func mustBeCompatible(last, next string) bool {
	if semver.Prerelease(last) != "" {
		return false
	}
	return semver.Major(next) != "v0" && semver.Major(last) != "v0" || semver.MajorMinor(last) == semver.MajorMinor(next)
}
