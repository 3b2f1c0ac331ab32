// SPDX-License-Identifier: Apache-2.0

package images

import (
	"cmp"
	"fmt"
	"os"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// RefName is the annotation by which tools find an image in an OCI image layout.
const RefName = "org.opencontainers.image.ref.name"

// WriteLayout writes images into a new folder as an OCI image layout. Images of the same name become one index, with a
// manifest for each architecture. The value of RefName is the name without the registry.
func WriteLayout(folder string, all ...Image) error {
	var order []name.Tag
	indexes := map[name.Tag]v1.ImageIndex{}
	for _, i := range all {
		tag, err := tagOf(i.Name)
		if err != nil {
			return err
		}
		image, err := build(i, types.OCILayer)
		if err != nil {
			return fmt.Errorf("make image %s: %w", i.Name, err)
		}
		if indexes[tag] == nil {
			indexes[tag] = empty.Index
			order = append(order, tag)
		}
		indexes[tag] = mutate.AppendManifests(indexes[tag], mutate.IndexAddendum{
			Add:        mutate.ConfigMediaType(mutate.MediaType(image, types.OCIManifestSchema1), types.OCIConfigJSON),
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: cmp.Or(i.Architecture, runtime.GOARCH)}},
		})
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		return fmt.Errorf("make the folder of images: %w", err)
	}
	written, err := layout.Write(folder, empty.Index)
	if err != nil {
		return fmt.Errorf("write images to %s: %w", folder, err)
	}
	for _, tag := range order {
		reference := tag.RepositoryStr() + ":" + tag.TagStr()
		if err := written.AppendIndex(indexes[tag], layout.WithAnnotations(map[string]string{RefName: reference})); err != nil {
			return fmt.Errorf("write image %s to %s: %w", tag, folder, err)
		}
	}
	return nil
}

// Index is an image of several architectures in a layout.
type Index struct {
	// Name is the value of RefName.
	Name   string
	Digest v1.Hash
	// Size is that of all its files.
	Size int64
}

// ReadLayout returns the images of a layout that WriteLayout has written, in its order.
func ReadLayout(folder string) ([]Index, error) {
	top, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, fmt.Errorf("read images of %s: %w", folder, err)
	}
	list, err := top.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("read images of %s: %w", folder, err)
	}
	var all []Index
	for _, d := range list.Manifests {
		index := Index{Name: d.Annotations[RefName], Digest: d.Digest}
		platforms, err := top.ImageIndex(d.Digest)
		if err != nil {
			return nil, fmt.Errorf("read image %s of %s: %w", index.Name, folder, err)
		}
		if index.Size, err = sizeOf(platforms); err != nil {
			return nil, fmt.Errorf("read image %s of %s: %w", index.Name, folder, err)
		}
		all = append(all, index)
	}
	return all, nil
}

func sizeOf(index v1.ImageIndex) (size int64, err error) {
	list, err := index.IndexManifest()
	if err != nil {
		return 0, err
	}
	for _, d := range list.Manifests {
		image, err := index.Image(d.Digest)
		if err != nil {
			return 0, err
		}
		manifest, err := image.Manifest()
		if err != nil {
			return 0, err
		}
		size += d.Size + manifest.Config.Size
		for _, l := range manifest.Layers {
			size += l.Size
		}
	}
	return size, nil
}
