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
	"time"

	"golang.org/x/mod/semver"

	"github.com/solonode/sno/hack/api"
	"github.com/solonode/sno/hack/changelog"
	"github.com/solonode/sno/hack/versions"
	"github.com/solonode/sno/hack/workspace"
)

// ErrRefused is wrapped by the errors about a repository that cannot be released.
var ErrRefused = errors.New("cannot release")

// Release releases all modules of hack/versions.yaml.
type Release struct {
	Root    string
	Version string
	Date    time.Time
	Out     io.Writer
	// Verify is `make verify`.
	Verify func(context.Context) error
	// Check is Check.Run for a commit.
	Check func(ctx context.Context, commit string) error
}

// Run writes the version into hack/versions.yaml, the go.mod files, the documents and the golden files of the API,
// commits that, and makes all tags in one transaction. It pushes nothing. After an error the branch, the tags and the
// files are what they were before.
func (r Release) Run(ctx context.Context) (err error) {
	repo := repository{r.Root}
	ws, err := workspace.Load(r.Root)
	if err != nil {
		return err
	}
	pins, err := versions.Read(ws.Path(versionsFile))
	if err != nil {
		return err
	}
	tags, err := tagsOf(ctx, repo)
	if err != nil {
		return err
	}
	files, err := r.refuse(ctx, repo, ws, pins, tags)
	if err != nil {
		return err
	}
	if err := r.compare(ctx, repo, ws, pins, tags); err != nil {
		return err
	}
	before, err := repo.git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	undo := newUndo(ws)
	defer func() {
		if err != nil {
			err = errors.Join(err, undo.run(context.WithoutCancel(ctx), repo, before))
		}
	}()
	if err := undo.write(files); err != nil {
		return err
	}
	if err := rewrite(ws.Root, undo); err != nil {
		return err
	}
	if err := r.Verify(ctx); err != nil {
		return fmt.Errorf("make verify: %w", err)
	}
	commit, err := r.commit(ctx, repo, undo.names())
	if err != nil {
		return err
	}
	if err := r.Check(ctx, commit); err != nil {
		return fmt.Errorf("check of the commit: %w", err)
	}
	names, err := r.tag(ctx, repo, commit, pins.Release.Modules())
	if err != nil {
		return err
	}
	fmt.Fprintf(r.Out, "Released %s as commit %s with %d tags. Build the downloads of this commit:\n  make dist DIST_FLAGS=-check\n"+
		"Push the tags together:\n  git push --atomic origin HEAD %s\n",
		r.Version, commit, len(names), strings.Join(names, " "))
	return nil
}

// refuse returns all reasons why nothing can be released, or the new texts of the files that have the version.
func (r Release) refuse(
	ctx context.Context, repo repository, ws *workspace.Workspace, pins *versions.File, tags []string,
) (map[string]string, error) {
	var faults []error
	fault := func(err error) {
		if err != nil {
			faults = append(faults, fmt.Errorf("%w: %w", ErrRefused, err))
		}
	}
	fault(versions.CheckVersion(r.Version))
	status, err := repo.git(ctx, "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	if status != "" {
		fault(fmt.Errorf("the tree has changes that are not committed:\n%s", status))
	}
	for _, dir := range pins.Release.Modules() {
		if tag := dir + "/" + r.Version; slices.Contains(tags, tag) {
			fault(fmt.Errorf("the tag %s exists", tag))
		}
		if last := lastOf(tags, dir); semver.IsValid(r.Version) && semver.Compare(last, r.Version) > 0 {
			fault(fmt.Errorf("%s has a later release, %s", dir, last))
		}
	}
	files := map[string]string{}
	text, err := os.ReadFile(ws.Path(changelog.File))
	if err != nil {
		fault(err)
	} else {
		files[changelog.File], err = changelog.Release(string(text), r.Version, r.Date)
		fault(err)
	}
	text, err = os.ReadFile(ws.Path(versionsFile))
	if err != nil {
		return nil, err
	}
	text, err = versions.SetRelease(text, r.Version)
	fault(err)
	files[versionsFile] = string(text)
	all, err := ws.Files(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range all {
		if path.Ext(name) != ".md" || name == changelog.File || strings.Contains(name, "/testdata/") {
			continue
		}
		text, err := os.ReadFile(ws.Path(name))
		if err != nil {
			return nil, err
		}
		if changed := versions.SetInDocument(string(text), r.Version); changed != string(text) {
			files[name] = changed
		}
	}
	for _, dir := range pins.Release.Libraries {
		text, err := os.ReadFile(ws.Path(api.File(dir)))
		fault(err)
		files[api.File(dir)] = api.Parse(string(text)).Release().String()
	}
	return files, errors.Join(faults...)
}

// rewrite makes the go.mod files agree with the new hack/versions.yaml.
func rewrite(root string, u *undo) error {
	ws, err := workspace.Load(root)
	if err != nil {
		return err
	}
	pins, err := versions.Read(ws.Path(versionsFile))
	if err != nil {
		return err
	}
	changed, err := versions.Rewrite(pins, ws)
	for _, dir := range changed {
		u.written[dir+"/go.mod"] = true
	}
	return err
}

// commit commits the files, and refuses others that changed meanwhile.
func (r Release) commit(ctx context.Context, repo repository, names []string) (string, error) {
	out, err := repo.git(ctx, "status", "--porcelain", "-z", "--no-renames")
	if err != nil {
		return "", err
	}
	for entry := range strings.SplitSeq(strings.Trim(out, "\x00"), "\x00") {
		if len(entry) > 3 && !slices.Contains(names, entry[3:]) {
			return "", fmt.Errorf("%w: %s has changed meanwhile", ErrRefused, entry[3:])
		}
	}
	args := append([]string{"commit", "--quiet", "--message=all: release " + r.Version, "--"}, names...)
	if _, err := repo.git(ctx, args...); err != nil {
		return "", err
	}
	return repo.git(ctx, "rev-parse", "HEAD")
}

// tag makes the annotated tags of all modules or none.
func (r Release) tag(ctx context.Context, repo repository, commit string, dirs []string) ([]string, error) {
	tagger, err := repo.git(ctx, "var", "GIT_COMMITTER_IDENT")
	if err != nil {
		return nil, err
	}
	var names []string
	transaction := "start\n"
	for _, dir := range dirs {
		name := dir + "/" + r.Version
		object, err := repo.gitWith(ctx, fmt.Sprintf("object %s\ntype commit\ntag %s\ntagger %s\n\n%s %s\n", commit, name, tagger, dir, r.Version), "mktag")
		if err != nil {
			return nil, err
		}
		names = append(names, name)
		transaction += "create refs/tags/" + name + " " + object + "\n"
	}
	if _, err := repo.gitWith(ctx, transaction+"prepare\ncommit\n", "update-ref", "--stdin"); err != nil {
		return nil, fmt.Errorf("create the tags: %w", err)
	}
	return names, nil
}

// undo restores the files that a release has written.
type undo struct {
	ws      *workspace.Workspace
	written map[string]bool
}

func newUndo(ws *workspace.Workspace) *undo { return &undo{ws: ws, written: map[string]bool{}} }

func (u *undo) write(files map[string]string) error {
	for name, text := range files {
		u.written[name] = true
		if err := os.WriteFile(u.ws.Path(name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (u *undo) names() (names []string) {
	for name := range u.written {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (u *undo) run(ctx context.Context, repo repository, before string) error {
	_, err := repo.git(ctx, "reset", "--quiet", "--soft", before)
	if names := u.names(); len(names) > 0 {
		_, restored := repo.git(ctx, append([]string{"checkout", "--quiet", before, "--"}, names...)...)
		err = errors.Join(err, restored)
	}
	return err
}

func tagsOf(ctx context.Context, repo repository) ([]string, error) {
	out, err := repo.git(ctx, "tag", "--list")
	return strings.Fields(out), err
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

// compare prints the differences of each library's API from its last release, and refuses incompatible ones where the
// version promises compatibility: in v0 another minor version may have them, from v1 on none.
func (r Release) compare(ctx context.Context, repo repository, ws *workspace.Workspace, pins *versions.File, tags []string) (err error) {
	scratch, err := os.MkdirTemp("", "sno-api-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	var faults []error
	trees := map[string]*workspace.Workspace{}
	for _, dir := range pins.Release.Libraries {
		last := lastOf(tags, dir)
		if last == "" {
			fmt.Fprintf(r.Out, "API of %s: no earlier release to compare with\n", dir)
			continue
		}
		tree := trees[last]
		if tree == nil {
			folder := filepath.Join(scratch, last)
			if err := checkOut(ctx, repo, dir+"/"+last, folder); err != nil {
				return err
			}
			if tree, err = workspace.Load(folder); err != nil {
				return err
			}
			trees[last] = tree
		}
		report, err := difference(ctx, tree, ws, dir)
		if err != nil {
			return err
		}
		fmt.Fprintf(r.Out, "API of %s since %s:\n", dir, last)
		breaks := false
		for _, change := range report.Changes {
			breaks = breaks || !change.Compatible
		}
		if err := report.Text(r.Out); err != nil {
			return err
		}
		if breaks && mustBeCompatible(last, r.Version) {
			faults = append(faults, fmt.Errorf("%w: %s has incompatible changes since %s, which %s may not have", ErrRefused, dir, last, r.Version))
		}
	}
	return errors.Join(faults...)
}

func mustBeCompatible(last, next string) bool {
	if semver.Prerelease(last) != "" {
		return false
	}
	return semver.Major(next) != "v0" && semver.Major(last) != "v0" || semver.MajorMinor(last) == semver.MajorMinor(next)
}
