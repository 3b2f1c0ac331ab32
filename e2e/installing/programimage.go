// SPDX-License-Identifier: Apache-2.0

package installing

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/images"
)

// loadImage loads an image with only a program into the machine's container runtime, and returns the program's path
// here.
func (m *Machine) loadImage(ctx context.Context, p programs.Program, image string) (string, error) {
	binary, err := programs.Build(ctx, p, m.Config.Progress)
	if err != nil {
		return "", err //nolint:wrapcheck // names the object
	}
	archive := m.site.path("images/" + p.Name + ".tar")
	if err := os.MkdirAll(filepath.Dir(archive), 0o755); err != nil {
		return "", fmt.Errorf("make the folder of image %s: %w", image, err)
	}
	if err := images.Write(archive, images.Image{Name: image, Files: map[string]string{p.Name: binary}, Entrypoint: []string{"/" + p.Name}}); err != nil {
		return "", err //nolint:wrapcheck // names the object
	}
	return binary, m.node.Containerd().Load(ctx, archive) //nolint:wrapcheck // names the object
}
