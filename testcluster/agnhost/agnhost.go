// SPDX-License-Identifier: Apache-2.0

package agnhost

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/testcluster/images"
	"github.com/solonode/sno/testcluster/nodeimage"
)

//go:embed rootfs.sh
var rootfs string

// ErrImage is returned when the image cannot be made.
var ErrImage = errors.New("no image agnhost")

// recipeVersion changes when this package changes the content of the image.
const recipeVersion = "1"

// Ensure returns an archive with the image under the given names. Each name is an image of its own, which differs from
// the others in the file NAME, because a node reports an image with several names by any of them. Progress may be nil.
func Ensure(ctx context.Context, suite assets.Assets, names []string, progress io.Writer) (archive string, err error) {
	if progress == nil {
		progress = io.Discard
	}
	_, key, err := assets.SuiteKey(ctx)
	if err != nil {
		return "", err
	}
	cache, err := assets.CacheDir()
	if err != nil {
		return "", err
	}
	archive = filepath.Join(filepath.Dir(cache), "agnhost", assets.Digest(key, rootfs, strings.Join(names, " "), recipeVersion)[:12]+".tar")
	err = assets.Once(ctx, archive, progress, func(temp string) error { return build(ctx, suite, names, temp, filepath.Dir(archive), progress) })
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrImage, err)
	}
	return archive, nil
}

func build(ctx context.Context, suite assets.Assets, names []string, archive, cache string, progress io.Writer) error {
	work := filepath.Dir(archive)
	// The layer with the file system does not change with the version of Kubernetes.
	layer := filepath.Join(cache, "rootfs-"+assets.Digest(rootfs, recipeVersion)[:12]+".tar")
	err := assets.Once(ctx, layer, progress, func(temp string) error {
		fmt.Fprintln(progress, "Building the image agnhost from Debian's packages (once, some minutes)")
		if err := nodeimage.RunDebootstrap(ctx, rootfs, filepath.Dir(temp)); err != nil {
			return err
		}
		return os.Rename(filepath.Join(filepath.Dir(temp), "rootfs.tar"), temp)
	})
	if err != nil {
		return err
	}
	folder, err := assets.SuiteFolder(ctx)
	if err != nil {
		return err
	}
	certificate := filepath.Join(folder, "test", "images", "agnhost", "porter", "localhost")
	var all []images.Image
	for i, name := range names {
		label := filepath.Join(work, fmt.Sprintf("name-%d", i))
		if err := os.WriteFile(label, []byte(name+"\n"), 0o600); err != nil {
			return err //nolint:wrapcheck // complete
		}
		all = append(all, images.Image{
			Name: name, Entrypoint: []string{"/agnhost"}, Command: []string{"pause"},
			Tar:   layer,
			Files: map[string]string{"agnhost": suite.Program("agnhost")},
			Data:  map[string]string{"localhost.crt": certificate + ".crt", "localhost.key": certificate + ".key", "NAME": label},
		})
	}
	return images.Write(archive, all...)
}
