// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/solonode/sno/hack/workspace"
)

const rbacDir = "config/rbac"

// Generate writes the generated files and returns their names: the RBAC role of the modules in focus with a controller/
// folder, from its +kubebuilder:rbac markers for a role called MODULE-controller, the golden files of their API, and,
// for all modules, the tables of roles and of the citations of requirements, and the list of public packages.
func Generate(ctx context.Context, ws *workspace.Workspace) ([]string, error) {
	var generated []string
	for _, m := range ws.WithCode() {
		if !hasController(ws, m) {
			continue
		}
		if err := generateRole(ctx, ws, m, ws.Path(m.Dir+"/"+rbacDir)); err != nil {
			return generated, err
		}
		generated = append(generated, m.Dir+"/"+rbacDir)
	}
	written, err := generateAPI(ctx, ws)
	generated = append(generated, written...)
	if err != nil {
		return generated, err
	}
	if _, err := os.Stat(ws.Path(path.Dir(rightsFile))); errors.Is(err, os.ErrNotExist) {
		return generated, nil
	}
	text, err := rights(ws)
	if err != nil {
		return generated, err
	}
	if err := os.WriteFile(ws.Path(rightsFile), []byte(text), 0o644); err != nil {
		return generated, err
	}
	generated = append(generated, rightsFile)
	changed, err := generateCitations(ctx, ws)
	if changed {
		generated = append(generated, requirementsFile)
	}
	return generated, err
}

func hasController(ws *workspace.Workspace, m workspace.Module) bool {
	info, err := os.Stat(ws.Path(m.Dir + "/cmd/" + m.Name() + "-controller"))
	return err == nil && info.IsDir() && !strings.HasPrefix(m.Dir, "examples/")
}

func generateRole(ctx context.Context, ws *workspace.Workspace, m workspace.Module, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return run(ctx, ws, m.Dir, ws.Environment(m), ws.Path("tools/run"), "controller-gen",
		"rbac:roleName="+m.Name()+"-controller", "paths=./controller/...", "output:rbac:dir="+dir)
}

// checkGenerated generates into a temporary folder and compares, so that it neither changes the tree nor needs a clean
// one.
func checkGenerated(ctx context.Context, ws *workspace.Workspace, w io.Writer) (err error) {
	scratch, err := os.MkdirTemp("", "sno-verify-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()

	var faults Findings
	for _, m := range ws.WithCode() {
		if !hasController(ws, m) {
			continue
		}
		fmt.Fprintf(w, "      %s\n", m.Dir)
		fresh := filepath.Join(scratch, m.Name())
		if err := generateRole(ctx, ws, m, fresh); err != nil {
			faults = append(faults, err.Error())
			continue
		}
		files, err := os.ReadDir(fresh)
		if err != nil {
			return err
		}
		if len(files) == 0 {
			faults = append(faults, m.Dir+"/controller: has no +kubebuilder:rbac marker, so its program has no permissions")
		}
		for _, file := range files {
			name := path.Join(m.Dir, rbacDir, file.Name())
			want, err := os.ReadFile(filepath.Join(fresh, file.Name()))
			if err != nil {
				return err
			}
			if got, err := os.ReadFile(ws.Path(name)); err != nil || !bytes.Equal(got, want) {
				faults = append(faults, name+": does not match the markers; run make generate")
			}
		}
	}
	return faults.errorOrNil()
}
