// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/e2e/release"
	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/testcluster/images"
)

// Nodes load images, all of them the same.
type Nodes interface {
	Load(ctx context.Context, archive string) error
	Tag(ctx context.Context, image string, names ...string) error
	// Pack writes a layer with programs of a node.
	Pack(ctx context.Context, file string, programs ...string) error
}

const doNothing = "registry.k8s.io/pause:3.10"

// controllerImages builds the controllers' images into an archive of the cache, and returns their names.
func controllerImages(ctx context.Context, progress io.Writer) (archive string, names map[programs.Program]string, err error) {
	folder, err := cacheFolder(ctx)
	if err != nil {
		return "", nil, err
	}
	unlock, err := lock(ctx, "images")
	if err != nil {
		return "", nil, err
	}
	defer unlock()
	own, err := release.Build(ctx, folder, release.ImageOptions{Progress: progress})
	if err != nil {
		return "", nil, err
	}
	names = map[programs.Program]string{}
	var all []images.Image
	var sum strings.Builder
	for _, one := range own {
		sum.WriteString(one.Image.Name)
		names[one.Program] = one.Image.Name
		all = append(all, one.Image)
	}
	digest := sha256.Sum256([]byte(sum.String()))
	archive = filepath.Join(folder, "images-"+hex.EncodeToString(digest[:6])+".tar")
	if _, err := os.Stat(archive); err == nil {
		return archive, names, nil
	}
	old, err := filepath.Glob(filepath.Join(folder, "images-*.tar"))
	if err != nil {
		return "", nil, err //nolint:wrapcheck // the pattern is good
	}
	for _, file := range old {
		_ = os.Remove(file) // unused
	}
	return archive, names, images.Write(archive, all...)
}

// cacheFolder returns a folder of the cache, one for each checkout.
func cacheFolder(ctx context.Context) (string, error) {
	root, err := programs.Root(ctx)
	if err != nil {
		return "", err
	}
	cache, err := assets.CacheDir()
	if err != nil {
		return "", err
	}
	checkout := sha256.Sum256([]byte(root))
	folder := filepath.Join(filepath.Dir(cache), "kind", "controllers-"+hex.EncodeToString(checkout[:6]))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("make the folder of the controllers: %w", err)
	}
	return folder, nil
}

// lock waits for a lock among the processes of this checkout.
func lock(ctx context.Context, name string) (unlock func(), err error) {
	folder, err := cacheFolder(ctx)
	if err != nil {
		return nil, err
	}
	file := flock.New(filepath.Join(folder, name+".lock"))
	if locked, err := file.TryLockContext(ctx, poll); err != nil || !locked {
		return nil, fmt.Errorf("wait for the lock %s: %w", file.Path(), errors.Join(err, ctx.Err()))
	}
	return func() { _ = file.Unlock() }, nil
}

// operandImages loads the images of the stand-ins' pods, whose names are only used on these clusters. Most do nothing;
// a guard of etcd runs curl, and the approver waits.
func operandImages(ctx context.Context, c Nodes, folder string) error {
	var names []string
	for _, short := range []string{"router", "console", "downloads", "oauth-openshift", "oauth-apiserver", "kube-rbac-proxy"} {
		names = append(names, FullImageName(short))
	}
	if err := c.Tag(ctx, doNothing, names...); err != nil {
		return fmt.Errorf("name the operands' images: %w", err)
	}
	layer, archive := filepath.Join(folder, "cli-layer.tar"), filepath.Join(folder, "cli.tar")
	if err := c.Pack(ctx, layer, "/bin/bash", "/usr/bin/curl", "/usr/bin/sleep"); err != nil {
		return err
	}
	if err := images.Write(archive, images.Image{Name: FullImageName("cli"), Tar: layer}); err != nil {
		return err
	}
	if err := c.Load(ctx, archive); err != nil {
		return err
	}
	// The stock approver's command is a path.
	program := filepath.Join(folder, "machine-approver")
	if err := os.WriteFile(program, []byte("#!/bin/bash\ntrap 'exit 0' TERM\nsleep infinity & wait\n"), 0o755); err != nil { //nolint:gosec // it is a program
		return fmt.Errorf("write the program of the approver's stand-in: %w", err)
	}
	archive = filepath.Join(folder, "machine-approver.tar")
	if err := images.Write(archive, images.Image{Name: FullImageName("machine-approver"), Tar: layer, Files: map[string]string{"usr/bin/machine-approver": program}}); err != nil {
		return err
	}
	return c.Load(ctx, archive)
}

// FullImageName returns the full name of an image that the stand-ins name by one word and a tag: an image without a tag
// would be pulled each time.
func FullImageName(short string) string { return "docker.io/library/" + short + ":1" }
