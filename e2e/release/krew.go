// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/e2e/programs"
)

const (
	// Plugin is the name of kubectl-sno in krew's index.
	Plugin = "sno"
	// Manifest is the file that krew's index takes.
	Manifest = Plugin + ".yaml"
)

const description = `Plans, makes and undoes the changes that the cluster operators of OpenShift
need on a single node: where the router runs, replicas, the quorum guard,
graceful shutdown. Commands that only read also accept a must-gather.
`

// krew writes the manifest of the plugin with the archives of the rows.
func (b build) krew(rows []Row) error {
	var platforms []map[string]any
	for _, row := range rows {
		if row.Program != programs.KubectlSNO.Name {
			continue
		}
		system, architecture, _ := strings.Cut(row.Platform, "/")
		platforms = append(platforms, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]string{"os": system, "arch": architecture}},
			"uri":      strings.TrimSuffix(b.Address, "/") + "/" + row.File,
			"sha256":   row.SHA256,
			"bin":      b.target(Platform{system, architecture}).Binary(programs.KubectlSNO),
		})
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   map[string]any{"name": Plugin},
		"spec": map[string]any{
			"version":          b.Source.Version,
			"homepage":         "https://github.com/solonode/sno",
			"shortDescription": "Plan, make and undo changes for a single node",
			"description":      description,
			"platforms":        platforms,
		},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.out, Manifest), text, 0o644)
}

// ErrKrew means that krew has refused the manifest or the archive, or installed something else.
var ErrKrew = errors.New("krew")

// CheckKrew validates the manifest with krew's program, installs the archive for this machine with krew, and runs what
// krew has installed. The programs are built by tools/run.
func CheckKrew(ctx context.Context, folder string, o Options, rows []Row) (err error) {
	manifest := filepath.Join(folder, Manifest)
	tool := filepath.Join(o.Root, "tools", "run")
	if err := command(ctx, nil, nil, tool, "validate-krew-manifest", "-manifest", manifest, "-skip-install"); err != nil {
		return err
	}
	logf(o.Progress, "krew's validation accepts %s", Manifest)
	here := here()
	i := slices.IndexFunc(rows, func(r Row) bool { return r.Program == programs.KubectlSNO.Name && r.Platform == here.String() })
	if i < 0 {
		logf(o.Progress, "krew installs nothing: there is no archive for %s", here)
		return nil
	}
	store, err := os.MkdirTemp("", "sno-krew-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(store)) }()
	env := []string{"KREW_ROOT=" + store, "KREW_NO_UPGRADE_CHECK=1"}
	if err := command(ctx, nil, env, tool, "krew", "install", "--manifest="+manifest, "--archive="+filepath.Join(folder, rows[i].File)); err != nil {
		return err
	}
	var out strings.Builder
	if err := command(ctx, &out, nil, filepath.Join(store, "bin", programs.KubectlSNO.Name), "--version"); err != nil {
		return err
	}
	if got, want := strings.TrimSpace(out.String()), "kubectl sno version "+o.Source.Version; got != want {
		return fmt.Errorf("%w: the installed plugin prints %q, want %q", ErrKrew, got, want)
	}
	logf(o.Progress, "krew installs %s, and it prints its version", rows[i].File)
	return nil
}

func command(ctx context.Context, out io.Writer, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	var both strings.Builder
	cmd.Stdout, cmd.Stderr = &both, &both
	if out != nil {
		cmd.Stdout = io.MultiWriter(&both, out)
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s: %w\n%s", ErrKrew, strings.Join(args, " "), err, strings.TrimSpace(both.String()))
	}
	return nil
}
