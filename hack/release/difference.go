// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/exp/apidiff"

	"github.com/solonode/sno/hack/api"
	"github.com/solonode/sno/hack/workspace"
)

// difference compares the API of a library in two trees.
func difference(ctx context.Context, before, after *workspace.Workspace, dir string) (apidiff.Report, error) {
	var modules []*apidiff.Module
	for _, tree := range []*workspace.Workspace{before, after} {
		packages, err := api.Load(ctx, tree, dir)
		if err != nil {
			return apidiff.Report{}, err
		}
		modules = append(modules, &apidiff.Module{Path: workspace.ModulePrefix + dir, Packages: packages[dir]})
	}
	return apidiff.ModuleChanges(modules[0], modules[1]), nil
}

// checkOut writes the files of a commit into a folder.
func checkOut(ctx context.Context, r repository, commit, folder string) (err error) {
	cmd := exec.CommandContext(ctx, "git", "archive", "--format=tar", commit)
	cmd.Dir = r.root
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = untar(out, folder)
	_, drained := io.Copy(io.Discard, out)
	if waited := cmd.Wait(); waited != nil {
		err = errors.Join(err, fmt.Errorf("git archive %s: %w", commit, waited))
	}
	return errors.Join(err, drained)
}

func untar(from io.Reader, folder string) (err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for files := tar.NewReader(from); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.FromSlash(header.Name)
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		text, err := io.ReadAll(files)
		if err != nil {
			return err
		}
		if err := root.WriteFile(name, text, 0o600); err != nil {
			return err
		}
	}
}
