// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"text/tabwriter"

	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/images"
)

// UnpullablePrefix is a prefix of names that cannot be pulled or pushed: such images are on the nodes, or they do not
// start.
const UnpullablePrefix = "registry.invalid/sno/"

// ErrNames means that a name of an image is invalid.
var ErrNames = errors.New("begin with a registry, as registry.example.com/sno/ does, and take letters, digits, dots, dashes and underscores")

// ImageOptions configure a build of images. The zero value is all programs of clusters, for this machine's
// architecture, with UnpullablePrefix.
type ImageOptions struct {
	// Root is the folder of a checkout; empty for that of this program.
	Root string
	// Programs are in the workspace and named after their packages; nil for programs.Shipped.
	Programs []programs.Program
	// Architecture is a name of Go; empty for this machine's.
	Architecture string
	// Prefix is the prefix of names: a registry and usually a folder. Empty for UnpullablePrefix.
	Prefix string
	// Tag is the tag of all images; empty for one by content.
	Tag string
	// Version is the version of the programs; empty for none.
	Version  string
	Progress io.Writer
}

// ProgramImage is an image of a program, which is not written yet.
type ProgramImage struct {
	Program programs.Program
	Image   images.Image
	// SBOM is a file in the folder of the build. The image contains it as well.
	SBOM string
}

// Build compiles the programs into a folder, writes an SBOM next to each, and returns their images.
func Build(ctx context.Context, folder string, o ImageOptions) ([]ProgramImage, error) {
	o, err := o.complete(ctx)
	if err != nil {
		return nil, err
	}
	if folder, err = filepath.Abs(folder); err != nil { // the compiler runs elsewhere
		return nil, fmt.Errorf("find the folder of the images: %w", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of the images: %w", err)
	}
	target := Target{Root: o.Root, Platform: Platform{"linux", o.Architecture}, Version: o.Version}
	if err := Compile(ctx, folder, target, o.Programs, o.Progress); err != nil {
		return nil, err
	}
	var all []ProgramImage
	for _, program := range o.Programs {
		own, err := Wrap(program, filepath.Join(folder, program.Name), o)
		if err != nil {
			return nil, fmt.Errorf("wrap %s: %w", program.Name, err)
		}
		all = append(all, own)
	}
	return all, nil
}

// complete sets defaults, and checks names before the programs are compiled for some minutes.
func (o ImageOptions) complete(ctx context.Context) (ImageOptions, error) {
	if o.Root == "" {
		root, err := programs.Root(ctx)
		if err != nil {
			return o, err
		}
		o.Root = root
	}
	if o.Programs == nil {
		o.Programs = programs.Shipped()
	}
	o.Prefix, o.Architecture = cmp.Or(o.Prefix, UnpullablePrefix), cmp.Or(o.Architecture, runtime.GOARCH)
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	for _, program := range o.Programs {
		if name := o.name(program, cmp.Or(o.Tag, "TAG")); images.CheckName(name) != nil {
			return o, fmt.Errorf("invalid name of an image: %s: %w", name, ErrNames)
		}
	}
	return o, nil
}

func (o ImageOptions) name(program programs.Program, tag string) string {
	return o.Prefix + program.Name + ":" + tag
}

// Wrap writes an SBOM next to a binary, and returns an image with both.
func Wrap(program programs.Program, binary string, o ImageOptions) (ProgramImage, error) {
	content, err := os.ReadFile(binary)
	if err != nil {
		return ProgramImage{}, err
	}
	list, err := SBOM(content, o.Version)
	if err != nil {
		return ProgramImage{}, err
	}
	file := binary + ".cdx.json"
	if err := os.WriteFile(file, list, 0o644); err != nil {
		return ProgramImage{}, err
	}
	digest := sha256.New()
	_, _ = digest.Write(content) // a hash takes everything
	_, _ = digest.Write(list)
	return ProgramImage{Program: program, SBOM: file, Image: images.Image{
		Name:  o.name(program, cmp.Or(o.Tag, hex.EncodeToString(digest.Sum(nil)[:6]))),
		Files: map[string]string{program.Name: binary}, Entrypoint: []string{"/" + program.Name}, User: images.NonRootUser,
		Data:         map[string]string{"sbom/" + filepath.Base(file): file},
		Architecture: o.Architecture,
	}}, nil
}

// ArchiveName is the file that engines load.
const ArchiveName = "images.tar"

// ImageRow describes an image for an installation.
type ImageRow struct {
	Program, Image, Digest, SBOM string
}

// WriteImages builds the images into a folder: one archive that engines load, and an SBOM for each image.
func WriteImages(ctx context.Context, folder string, o ImageOptions) ([]ImageRow, error) {
	own, err := Build(ctx, folder, o)
	if err != nil {
		return nil, err
	}
	var all []images.Image
	for _, one := range own {
		all = append(all, one.Image)
	}
	archive := filepath.Join(folder, ArchiveName)
	if err := images.Write(archive, all...); err != nil {
		return nil, err
	}
	var rows []ImageRow
	for _, one := range own {
		digest, err := images.Digest(archive, one.Image.Name)
		if err != nil {
			return nil, err
		}
		rows = append(rows, ImageRow{one.Program.Name, one.Image.Name, digest, filepath.Join(folder, filepath.Base(one.SBOM))})
	}
	return rows, nil
}

// PrintImages writes the rows as a table.
func PrintImages(w io.Writer, rows []ImageRow) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tIMAGE\tDIGEST\tSBOM")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", r.Program, r.Image, r.Digest, r.SBOM)
	}
	return table.Flush()
}
