// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/solonode/sno/testcluster/images"
)

// ArchiveName is the file that engines load.
const ArchiveName = "images.tar"

// Row describes an image for an installation.
type Row struct {
	Program, Image, Digest, SBOM string
}

// Write builds the images into a folder: one archive that engines load, and an SBOM for each image.
func Write(ctx context.Context, folder string, o Options) ([]Row, error) {
	own, err := Build(ctx, folder, o)
	if err != nil {
		return nil, err
	}
	var all []images.Image
	for _, one := range own {
		all = append(all, one.Image)
	}
	archive, started, progress := filepath.Join(folder, ArchiveName), time.Now(), o.Progress
	if progress == nil {
		progress = io.Discard
	}
	logf(progress, "Writing %s", archive)
	if err := images.Write(archive, all...); err != nil {
		return nil, err
	}
	info, err := os.Stat(archive)
	if err != nil {
		return nil, fmt.Errorf("read the archive of images: %w", err)
	}
	logf(progress, "Wrote %d images, %d MiB, in %s", len(all), info.Size()>>20, time.Since(started).Round(100*time.Millisecond))
	var rows []Row
	for _, one := range own {
		digest, err := images.Digest(archive, one.Image.Name)
		if err != nil {
			return nil, err
		}
		rows = append(rows, Row{one.Program.Name, one.Image.Name, digest, filepath.Join(folder, filepath.Base(one.SBOM))})
	}
	return rows, nil
}

// Print writes the rows as a table.
func Print(w io.Writer, rows []Row) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tIMAGE\tDIGEST\tSBOM")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", r.Program, r.Image, r.Digest, r.SBOM)
	}
	return table.Flush()
}
