// SPDX-License-Identifier: Apache-2.0

package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/solonode/sno/testcluster/engine"
)

// Containerd is the container runtime of a container of the image.
type Containerd struct {
	Engine    engine.Engine
	Container string
}

func (c Containerd) ctr(arguments ...string) []string {
	return append([]string{c.Container, "ctr", "--namespace=k8s.io", "images"}, arguments...)
}

// Load imports the images of an archive, as package images or `docker save` writes them.
func (c Containerd) Load(ctx context.Context, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err //nolint:wrapcheck // complete
	}
	defer func() { _ = file.Close() }()
	if _, err := c.Engine.Pipe(ctx, file, append([]string{"exec", "--interactive"}, c.ctr("import", "--digests", "-")...)...); err != nil {
		return fmt.Errorf("load %s on node %s: %w", archive, c.Container, err)
	}
	return nil
}

// Tag adds names to an image.
func (c Containerd) Tag(ctx context.Context, image string, names ...string) error {
	_, err := c.Engine.Output(ctx, append([]string{"exec"}, c.ctr(append([]string{"tag", "--force", image}, names...)...)...)...)
	return err
}

// Pack writes a layer for an image (images.Image.Tar) with programs of the container, by their paths there, and their
// libraries.
func (c Containerd) Pack(ctx context.Context, file string, programs ...string) error {
	out, err := os.Create(file)
	if err != nil {
		return err //nolint:wrapcheck // complete
	}
	const script = `{ for p; do echo "$p"; ldd "$p" | tr -s ' \t' '\n' | grep '^/'; done; } | sort -u |
tar --create --dereference --absolute-names --transform='s,^/,,' --mtime=@0 --owner=0 --group=0 --files-from=- --file=-`
	cmd := c.Engine.Command(ctx, append([]string{"exec", c.Container, "sh", "-c", script, "sh"}, programs...)...)
	var complaints strings.Builder
	cmd.Stdout, cmd.Stderr = out, &complaints
	if err := errors.Join(cmd.Run(), out.Close()); err != nil {
		return fmt.Errorf("pack %s: %w: %s", strings.Join(programs, ", "), err, strings.TrimSpace(complaints.String()))
	}
	return nil
}
