// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// NonRootUser is a numeric user, because images without a base have no names of users.
const NonRootUser = "65532:65532"

// ErrImage is returned for an invalid description of an image.
var ErrImage = errors.New("no image")

// Image describes an image.
type Image struct {
	Name string
	// Files maps paths in the image, without a leading slash, to executable files of this machine.
	Files map[string]string
	Data  map[string]string
	// Tar is an additional layer, a file of this machine; empty for none.
	Tar        string
	Entrypoint []string
	// Command is the arguments of the entry point that a container may replace.
	Command []string
	// User is numeric; empty for root.
	User string
	// Architecture is Go's name; empty for this machine's.
	Architecture string
}

// CheckName returns an error for a name without a registry, a repository or a tag, because engines complete such names
// differently.
func CheckName(image string) error {
	_, err := tagOf(image)
	return err
}

func tagOf(image string) (name.Tag, error) {
	tag, err := name.NewTag(image, name.StrictValidation)
	if err != nil {
		return tag, fmt.Errorf("%w: %w", ErrImage, err)
	}
	return tag, nil
}

// Write writes images into one archive, as `docker save` does. The file appears when it is complete.
func Write(file string, all ...Image) error {
	built := map[name.Tag]v1.Image{}
	for _, i := range all {
		tag, err := tagOf(i.Name)
		if err != nil {
			return err
		}
		if built[tag], err = build(i, types.DockerLayer); err != nil {
			return fmt.Errorf("make image %s: %w", i.Name, err)
		}
	}
	unfinished := file + ".unfinished"
	if err := tarball.MultiWriteToFile(unfinished, built); err != nil {
		return fmt.Errorf("write the archive of images %s: %w", file, err)
	}
	return os.Rename(unfinished, file) //nolint:wrapcheck // names both
}

// Digest returns the digest of an image's configuration, which most engines show as its ID. It covers all files, and
// not their compression.
func Digest(archive, image string) (string, error) {
	tag, err := tagOf(image)
	if err != nil {
		return "", err
	}
	read, err := tarball.ImageFromPath(archive, &tag)
	if err != nil {
		return "", fmt.Errorf("read image %s of %s: %w", image, archive, err)
	}
	digest, err := read.ConfigName()
	if err != nil {
		return "", fmt.Errorf("read image %s of %s: %w", image, archive, err)
	}
	return digest.String(), nil
}

func build(i Image, layers types.MediaType) (v1.Image, error) {
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		OS: "linux", Architecture: cmp.Or(i.Architecture, runtime.GOARCH),
		RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{Entrypoint: i.Entrypoint, Cmd: i.Command, User: i.User, Env: []string{"PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}},
	})
	if err != nil {
		return nil, err
	}
	var openers []tarball.Opener
	if len(i.Files)+len(i.Data) > 0 {
		layer, err := pack(i.Files, i.Data)
		if err != nil {
			return nil, err
		}
		openers = append(openers, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer)), nil })
	}
	if i.Tar != "" {
		openers = append(openers, func() (io.ReadCloser, error) { return os.Open(i.Tar) })
	}
	if len(openers) == 0 {
		return nil, fmt.Errorf("%w: it has no files", ErrImage)
	}
	for _, opener := range openers {
		layer, err := tarball.LayerFromOpener(opener, tarball.WithCompressionLevel(gzip.BestSpeed), tarball.WithCompressedCaching,
			tarball.WithMediaType(layers))
		if err != nil {
			return nil, err
		}
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			return nil, err
		}
	}
	return image, nil
}

func pack(programs, data map[string]string) ([]byte, error) {
	files := maps.Clone(programs)
	if files == nil {
		files = map[string]string{}
	}
	for at, file := range data {
		if _, twice := files[at]; twice {
			return nil, fmt.Errorf("%w: %s is two files", ErrImage, at)
		}
		files[at] = file
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for _, dir := range folders(files) {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}); err != nil {
			return nil, err
		}
	}
	for _, at := range slices.Sorted(maps.Keys(files)) {
		content, err := os.ReadFile(files[at])
		if err != nil {
			return nil, err
		}
		mode := int64(0o755)
		if _, ok := data[at]; ok {
			mode = 0o644
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: at, Mode: mode, Size: int64(len(content))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(content); err != nil {
			return nil, err
		}
	}
	return layer.Bytes(), w.Close()
}

func folders(files map[string]string) []string {
	all := map[string]bool{}
	for at := range files {
		for dir := path.Dir(at); dir != "." && !strings.HasSuffix(dir, "/"); dir = path.Dir(dir) {
			all[dir] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
