// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/solonode/sno/hack/workspace"
)

// tryCommand changes the file in a copy of the whole repository and runs the command at its root. The copy is made
// once, so that its packages are compiled once; every mutation is reverted after its command.
func (r *Runner) tryCommand(ctx context.Context, m workspace.Module, entry Entry, _ string) error {
	mutated, err := entry.mutate(r.Workspace.Path(m.Dir))
	if err != nil {
		return err
	}
	tree := filepath.Join(r.Scratch, "tree")
	if err := r.commandBaseline(ctx, entry, tree); err != nil {
		return err
	}

	file := filepath.Join(tree, filepath.FromSlash(m.Dir), filepath.FromSlash(entry.File))
	original, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(mutated), 0o644); err != nil {
		return err
	}
	err = r.tryInTree(ctx, m, entry, tree)
	return errors.Join(err, os.WriteFile(file, original, 0o644))
}

func (r *Runner) tryInTree(ctx context.Context, m workspace.Module, entry Entry, tree string) error {
	copied := &workspace.Workspace{Root: tree}
	build := copied.Command(ctx, m.Dir, copied.Environment(m), "go", "build", "./...")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: does not compile:\n%s", ErrDoesNotApply, tail(string(output)))
	}
	output, err := r.runCommand(ctx, entry, tree)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return judge(entry, output, err)
}

func (r *Runner) commandBaseline(ctx context.Context, entry Entry, tree string) error {
	key := "command\n" + strings.Join(entry.Command, "\n")
	if r.baselines[key] == nil {
		r.baselines[key] = sync.OnceValue(func() error {
			if _, err := os.Stat(tree); err != nil {
				if err := r.copyTree(ctx, tree); err != nil {
					return err
				}
			}
			r.progress("first without a mutation: %s\n", strings.Join(entry.Command, " "))
			output, err := r.runCommand(ctx, entry, tree)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				return fmt.Errorf("%w: the command fails without the mutation: %w\n%s", ErrDoesNotApply, err, tail(output))
			}
			return nil
		})
	}
	return r.baselines[key]()
}

func (r *Runner) runCommand(ctx context.Context, entry Entry, tree string) (string, error) {
	copied := &workspace.Workspace{Root: tree}
	// The flags of the make that started this program, and a GOWORK of the original, must not reach the command.
	cmd := copied.Command(ctx, ".", []string{"MAKEFLAGS=", "MFLAGS=", "MAKELEVEL=0", "GOWORK="}, entry.Command[0], entry.Command[1:]...)
	cmd.WaitDelay = stopGrace
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	output, err := cmd.CombinedOutput()
	return string(output), err
}

// copyTree copies the files that git tracks or would track. The copy is outside the repository, so that tools that
// search parent folders for a go.work find that of the copy.
func (r *Runner) copyTree(ctx context.Context, tree string) error {
	files, err := r.Workspace.Files(ctx)
	if err != nil {
		return err
	}
	for _, name := range files {
		if err := copyFile(r.Workspace.Path(name), filepath.Join(tree, filepath.FromSlash(name))); err != nil {
			return fmt.Errorf("copy the repository: %w", err)
		}
	}
	return nil
}

func copyFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if info.Mode()&os.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, info.Mode().Perm())
	if err != nil {
		return errors.Join(err, source.Close())
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, source.Close(), target.Close())
}
