// SPDX-License-Identifier: Apache-2.0

package postreboot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/rotate"

	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

// clean returns the phases that remove what the bootstrap phase has left (U-INS-15). Scripts or program may never have
// existed on the machine, so each phase is done only when what the earlier ones remove is absent too.
func (o Options) clean() []phase.Phase {
	parts := []struct {
		name   string
		left   func() ([]string, error)
		reload bool // of systemd
	}{
		{"clean-data", o.data, false},
		{"clean-scripts", o.scripts, false},
		{"clean-units", o.units, true},
		{"clean-program", o.program, false},
	}
	phases := make([]phase.Phase, len(parts))
	for i, part := range parts {
		phases[i] = phase.Phase{
			Name: part.name, Limit: cleanLimit,
			Done: func(context.Context) (bool, error) {
				for _, p := range parts[:i+1] {
					if left, err := p.left(); err != nil || len(left) > 0 {
						return false, err
					}
				}
				return true, nil
			},
			Run: func(ctx context.Context, _ *phase.Progress) error {
				left, err := part.left()
				if err != nil {
					return err
				}
				for _, path := range left {
					if err := o.remove(path); err != nil {
						return err
					}
				}
				if !part.reload {
					return nil
				}
				if err := o.Systemctl(ctx, "daemon-reload"); err != nil {
					return fmt.Errorf("systemctl daemon-reload: %w", err)
				}
				return nil
			},
		}
	}
	return phases
}

// data has the marker of the installation's progress last.
func (o Options) data() ([]string, error) {
	return o.existing(node.BootstrapSecrets, node.BootstrapConfigs, node.SnapshotDir, node.LogBundle, ControlPlaneReady)
}

func (o Options) scripts() ([]string, error) {
	return o.existing(node.GatherScript, node.MastersGatherScript)
}

func (o Options) program() ([]string, error) { return o.existing(node.Program) }

// units has the drop-in first: the kubelet, which requires the unit because of it, would not start otherwise. The unit
// of this program removes itself.
func (o Options) units() ([]string, error) {
	dropIn, err := o.dropIn()
	if err != nil {
		return nil, err
	}
	paths := []string{dropIn}
	for _, kind := range []string{"wants", "requires"} {
		folders, err := fs.Glob(os.DirFS(o.Root), node.UnitDir+"/*."+kind)
		if err != nil {
			return nil, err //nolint:wrapcheck // only for an invalid pattern
		}
		for _, folder := range folders {
			paths = append(paths, folder+"/"+node.RestoreUnit)
		}
	}
	paths, err = o.existing(append(paths, node.UnitDir+"/"+node.RestoreUnit)...)
	if err != nil {
		return nil, err
	}
	if _, own, err := o.preset(); err != nil || !own {
		return paths, err
	}
	return append(paths, node.Preset), nil
}

// dropIn returns the drop-in of the kubelet, or its folder if that has nothing else.
func (o Options) dropIn() (string, error) {
	const folder = node.UnitDir + "/kubelet.service.d"
	entries, err := os.ReadDir(o.path(folder))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return folder, nil
	case err != nil:
		return "", err //nolint:wrapcheck // it names the folder
	case slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() != node.RestoreDropIn }):
		return folder + "/" + node.RestoreDropIn, nil
	}
	return folder, nil
}

func (o Options) existing(paths ...string) ([]string, error) {
	var found []string
	for _, path := range paths {
		switch _, err := os.Lstat(o.path(path)); {
		case err == nil:
			found = append(found, path)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err //nolint:wrapcheck // it names the path
		}
	}
	return found, nil
}

// preset returns the other lines of the preset file, and reports whether it has lines of the installation's units.
func (o Options) preset() (rest string, own bool, err error) {
	text, err := os.ReadFile(o.path(node.Preset))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", false, err //nolint:wrapcheck // it names the file
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 2 && (words[1] == node.RestoreUnit || words[1] == node.PostRebootUnit) {
			own = true
			continue
		}
		rest += line
	}
	return rest, own, nil
}

// remove removes a path recursively. In the preset file it removes only the lines of the installation's units.
func (o Options) remove(path string) error {
	if o.BeforeRemove != nil {
		if err := o.BeforeRemove(path); err != nil {
			return err
		}
	}
	if path == node.Preset {
		rest, _, err := o.preset()
		if err != nil {
			return err
		}
		if rest != "" {
			_, err := rotate.WriteChanged(o.Root, []files.File{{Path: path, Mode: 0o644, Content: []byte(rest)}})
			return err //nolint:wrapcheck // it names the file
		}
	}
	return os.RemoveAll(o.path(path)) //nolint:wrapcheck // it names the path
}
