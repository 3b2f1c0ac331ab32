// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/solonode/sno/hack/versions"
	"github.com/solonode/sno/hack/workspace"
)

// ErrRefused is wrapped by the errors about a repository that cannot be released.
var ErrRefused = errors.New("cannot release")

const changelog = "CHANGELOG.md"

// Release releases all modules of hack/versions.yaml.
type Release struct {
	Root    string
	Version string
	Out     io.Writer
	// Verify is `make verify` in a folder.
	Verify func(ctx context.Context, root string) error
	// Check is Check.Run for a commit.
	Check func(ctx context.Context, commit string) error
}

// Run writes the version into hack/versions.yaml, the go.mod files and the documents of another working tree, verifies
// and commits these there, and checks the commit. Only then the branch gets the commit and the tags. It pushes nothing.
// After an error before that the branch, the tags and the files are what they were.
func (r Release) Run(ctx context.Context) (err error) {
	repo := repository{r.Root}
	dirs, err := r.refuse(ctx, repo)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "sno-release-")
	if err != nil {
		return err
	}
	tree := repository{filepath.Join(scratch, "tree")}
	defer func() {
		_, removed := repo.git(context.WithoutCancel(ctx), "worktree", "remove", "--force", tree.root)
		err = errors.Join(err, removed, os.RemoveAll(scratch))
	}()
	if _, err := repo.git(ctx, "worktree", "add", "--quiet", "--detach", tree.root); err != nil {
		return err
	}
	if err := setVersion(ctx, tree.root, r.Version); err != nil {
		return err
	}
	if err := r.Verify(ctx, tree.root); err != nil {
		return fmt.Errorf("make verify: %w", err)
	}
	if _, err := tree.git(ctx, "commit", "--quiet", "--all", "--message=all: release "+r.Version); err != nil {
		return err
	}
	commit, err := tree.commit(ctx, "HEAD")
	if err != nil {
		return err
	}
	if err := r.Check(ctx, commit); err != nil {
		return fmt.Errorf("check of the commit: %w", err)
	}
	if _, err := repo.git(ctx, "merge", "--quiet", "--ff-only", commit); err != nil {
		return err
	}
	var names []string
	for _, dir := range dirs {
		name := dir + "/" + r.Version
		if _, err := repo.git(ctx, "tag", "--annotate", "--message="+dir+" "+r.Version, name, commit); err != nil {
			return err
		}
		names = append(names, name)
	}
	fmt.Fprintf(r.Out, "Released %s as commit %s with %d tags. Build the downloads of this commit:\n  make dist DIST_FLAGS=-check\n"+
		"Push the tags together:\n  git push --atomic origin HEAD %s\n",
		r.Version, commit, len(names), strings.Join(names, " "))
	return nil
}

// refuse returns all reasons why nothing can be released, or the folders of the released modules.
func (r Release) refuse(ctx context.Context, repo repository) ([]string, error) {
	pins, err := versions.Read(filepath.Join(r.Root, versionsFile))
	if err != nil {
		return nil, err
	}
	if err := versions.CheckVersion(r.Version); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...)))
	}
	status, err := repo.git(ctx, "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	if status != "" {
		fault("the tree has changes that are not committed:\n%s", status)
	}
	tags, err := repo.git(ctx, "tag", "--list")
	if err != nil {
		return nil, err
	}
	all := strings.Fields(tags)
	for _, dir := range pins.Release.Modules() {
		if tag := dir + "/" + r.Version; slices.Contains(all, tag) {
			fault("the tag %s exists", tag)
		}
		if last := lastOf(all, dir); semver.Compare(last, r.Version) > 0 {
			fault("%s has a later release, %s", dir, last)
		}
	}
	text, err := os.ReadFile(filepath.Join(r.Root, changelog))
	if err != nil {
		return nil, err
	}
	if heading := "## [" + strings.TrimPrefix(r.Version, "v") + "]"; !strings.Contains(string(text), "\n"+heading) {
		fault("%s has no section %q", changelog, heading)
	}
	return pins.Release.Modules(), errors.Join(faults...)
}

// setVersion writes the version into the files of a tree.
func setVersion(ctx context.Context, root, version string) error {
	ws, err := workspace.Load(root)
	if err != nil {
		return err
	}
	names, err := ws.Files(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name != versionsFile && (path.Ext(name) != ".md" || name == changelog || strings.Contains(name, "/testdata/")) {
			continue
		}
		text, err := os.ReadFile(ws.Path(name))
		if err != nil {
			return err
		}
		changed := []byte(versions.SetInDocument(string(text), version))
		if name == versionsFile {
			if changed, err = versions.SetRelease(text, version); err != nil {
				return err
			}
		}
		if string(changed) == string(text) {
			continue
		}
		if err := os.WriteFile(ws.Path(name), changed, 0o644); err != nil {
			return err
		}
	}
	pins, err := versions.Read(ws.Path(versionsFile))
	if err != nil {
		return err
	}
	_, err = versions.Rewrite(pins, ws)
	return err
}
