// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/solonode/sno/hack/workspace"
)

// writeProxy writes the modules of a commit into a folder for GOPROXY (https://go.dev/ref/mod#goproxy-protocol), with
// the files that the go command would take from the repository: the tracked files of the module's folder, and LICENSE.
// The repository is cloned because zip.CreateFromVCS refuses linked worktrees.
func writeProxy(ctx context.Context, r repository, folder, commit, version string, dirs []string) (err error) {
	scratch, err := os.MkdirTemp("", "sno-clone-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	clone := filepath.Join(scratch, "clone")
	if err := r.clone(ctx, clone); err != nil {
		return err
	}
	date, err := r.git(ctx, "show", "--no-patch", "--format=%cI", commit)
	if err != nil {
		return err
	}
	info := fmt.Appendf(nil, `{"Version": %q, "Time": %q}`, version, date)
	for _, dir := range dirs {
		mod, err := r.file(ctx, commit, dir+"/go.mod")
		if err != nil {
			return fmt.Errorf("%s: not in commit %s: %w", dir, commit, err)
		}
		m := module.Version{Path: workspace.ModulePrefix + dir, Version: version}
		escaped, err := module.EscapePath(m.Path)
		if err != nil {
			return err
		}
		at := filepath.Join(folder, filepath.FromSlash(escaped), "@v")
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		for name, text := range map[string][]byte{"list": []byte(version + "\n"), version + ".info": info, version + ".mod": mod} {
			if err := os.WriteFile(filepath.Join(at, name), text, 0o600); err != nil {
				return err
			}
		}
		file, err := os.Create(filepath.Join(at, version+".zip"))
		if err != nil {
			return err
		}
		if err := errors.Join(zip.CreateFromVCS(file, m, clone, commit, dir), file.Close()); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	return nil
}
