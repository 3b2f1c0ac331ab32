// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"os"
	"os/exec"
	"strings"

	"github.com/solonode/sno/hack/workspace"
)

// repository runs git in a folder.
type repository struct{ root string }

// git returns the output without the last line break.
func (r repository) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env = r.root, append(os.Environ(), "PWD="+r.root)
	out, err := workspace.Output(cmd)
	return strings.TrimSuffix(string(out), "\n"), err
}

// file returns the text of a file in a commit.
func (r repository) file(ctx context.Context, commit, name string) ([]byte, error) {
	text, err := r.git(ctx, "cat-file", "blob", commit+":"+name)
	return []byte(text + "\n"), err
}

// commit returns the hash of a commit. For an empty name this is one of the tracked files, which no branch has, or HEAD
// if they have not changed.
func (r repository) commit(ctx context.Context, name string) (string, error) {
	if name == "" {
		if made, err := r.git(ctx, "stash", "create"); err != nil || made != "" {
			return made, err
		}
		name = "HEAD"
	}
	return r.git(ctx, "rev-parse", "--verify", name+"^{commit}")
}

// checkOut writes the files of a commit into a new folder.
func (r repository) checkOut(ctx context.Context, commit, folder string) error {
	if err := r.clone(ctx, folder); err != nil {
		return err
	}
	_, err := repository{folder}.git(ctx, "checkout", "--quiet", "--detach", commit)
	return err
}

// clone makes a repository without files that shares the objects.
func (r repository) clone(ctx context.Context, folder string) error {
	_, err := r.git(ctx, "clone", "--quiet", "--shared", "--no-checkout", r.root, folder)
	return err
}
