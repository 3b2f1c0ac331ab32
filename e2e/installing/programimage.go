package installing

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/images"
)

// bring has the machine know an image with nothing in it but a program of ours, and returns the program's path here.
func (m *Machine) bring(ctx context.Context, p programs.Program, image string) (string, error) {
	binary, err := programs.Build(ctx, p, m.Config.Progress)
	if err != nil {
		return "", err //nolint:wrapcheck // it says of what
	}
	archive := m.site.path("images/" + p.Name + ".tar")
	if err := os.MkdirAll(filepath.Dir(archive), 0o755); err != nil {
		return "", fmt.Errorf("make room for image %s: %w", image, err)
	}
	if err := images.Write(archive, images.Image{Name: image, Files: map[string]string{p.Name: binary}, Entrypoint: []string{"/" + p.Name}}); err != nil {
		return "", err //nolint:wrapcheck // it says of what
	}
	return binary, m.node.Containerd().Load(ctx, archive) //nolint:wrapcheck // it says of what
}
