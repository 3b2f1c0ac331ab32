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
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/images"
)

const (
	// Checksums lists the other files in the format of sha256sum.
	Checksums = "SHA256SUMS"
	// Images is the folder of the images, an OCI image layout.
	Images = "images"
)

// Archived returns the programs for people's machines.
func Archived() []programs.Program {
	return []programs.Program{programs.KubectlSNO, programs.SNOTests, programs.Approve, programs.Install, programs.Render}
}

// Platform is an operating system and an architecture, by Go's names.
type Platform struct{ OS, Architecture string }

func (p Platform) String() string { return p.OS + "/" + p.Architecture }

// here is the platform of this machine.
func here() Platform { return Platform{runtime.GOOS, runtime.GOARCH} }

// Platforms returns the platforms of a release.
func Platforms() (all []Platform) {
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, architecture := range []string{"amd64", "arm64"} {
			all = append(all, Platform{system, architecture})
		}
	}
	return all
}

// Omitted returns why a program has no archive for a platform, or "". Those that write files of a node, with modes and
// locks of Unix, have none for windows.
func Omitted(program programs.Program, p Platform) string {
	if p.OS == "windows" && (program == programs.Install || program == programs.Render) {
		return "it writes files of a node, with modes and locks that windows does not have"
	}
	return ""
}

// ErrInput means that a name or a platform is unknown, or that the folder has other files.
var ErrInput = errors.New("invalid input")

// Select returns the programs with archives and those with images that are in a list of names; all for an empty list.
func Select(names []string) (archived, shipped []programs.Program, err error) {
	archived, shipped = Archived(), programs.Shipped()
	if len(names) == 0 {
		return archived, shipped, nil
	}
	known := map[string]bool{}
	keep := func(all []programs.Program) (kept []programs.Program) {
		for _, p := range all {
			known[p.Name] = true
			if slices.Contains(names, p.Name) {
				kept = append(kept, p)
			}
		}
		return kept
	}
	archived, shipped = keep(archived), keep(shipped)
	for _, name := range names {
		if !known[name] {
			return nil, nil, fmt.Errorf("%w: no program is called %q; there are: %s", ErrInput, name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
	return archived, shipped, nil
}

// ParsePlatforms returns the platforms of a list; all for an empty list.
func ParsePlatforms(names []string) ([]Platform, error) {
	all := Platforms()
	if len(names) == 0 {
		return all, nil
	}
	var chosen []Platform
	for _, name := range names {
		i := slices.IndexFunc(all, func(p Platform) bool { return p.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("%w: no platform is called %q; there are: %v", ErrInput, name, all)
		}
		if !slices.Contains(chosen, all[i]) {
			chosen = append(chosen, all[i])
		}
	}
	return chosen, nil
}

// Options configure a build.
type Options struct {
	// Root is the folder of a checkout.
	Root string
	// Source is the version and the time of the files.
	Source Source
	// Archived have archives, Shipped have images.
	Archived, Shipped []programs.Program
	Platforms         []Platform
	// Address is where the archives will be.
	Address string
	// Cache is the folder of Go's build cache; empty for the user's.
	Cache    string
	Progress io.Writer
}

// Row describes a file.
type Row struct {
	Program, Platform, File, SHA256 string
	Size                            int64
}

// Write writes everything into a folder, which it replaces when all is complete.
func Write(ctx context.Context, folder string, o Options) (rows []Row, err error) {
	if folder, err = filepath.Abs(folder); err != nil {
		return nil, err
	}
	if err := replaceable(folder); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return nil, err
	}
	// It is next to the folder, because a rename does not cross file systems.
	scratch, err := os.MkdirTemp(filepath.Dir(folder), filepath.Base(folder)+".unfinished-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	b := build{Options: o, out: filepath.Join(scratch, "out"), binaries: filepath.Join(scratch, "binaries")}
	if err := os.Mkdir(b.out, 0o755); err != nil {
		return nil, err
	}
	if rows, err = b.run(ctx); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(folder); err != nil {
		return nil, err
	}
	return rows, os.Rename(b.out, folder)
}

// replaceable returns an error for a folder that an earlier build has not written.
func replaceable(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(folder, Checksums)); err != nil {
		return fmt.Errorf("%w: %s has other files and no %s; use another folder", ErrInput, folder, Checksums)
	}
	return nil
}

type build struct {
	Options
	out, binaries string
}

func (b build) run(ctx context.Context) ([]Row, error) {
	here := here()
	platforms := b.Platforms
	if len(b.Archived) > 0 && !slices.Contains(platforms, here) {
		platforms = append(slices.Clone(platforms), here) // it prints completions and man pages
	}
	for _, p := range platforms {
		var all []programs.Program
		for _, program := range b.Archived {
			if Omitted(program, p) == "" {
				all = append(all, program)
			}
		}
		if p.OS == "linux" && slices.Contains(b.Platforms, p) {
			all = append(all, without(b.Shipped, all)...)
		}
		if len(all) == 0 {
			continue
		}
		if err := os.MkdirAll(b.folder(p), 0o755); err != nil {
			return nil, err
		}
		if err := Compile(ctx, b.folder(p), b.target(p), all, b.Progress); err != nil {
			return nil, err
		}
	}
	var rows []Row
	for _, program := range b.Archived {
		papers, err := b.papers(ctx, program, filepath.Join(b.folder(here), b.target(here).Binary(program)))
		if err != nil {
			return nil, err
		}
		for _, p := range b.Platforms {
			if why := Omitted(program, p); why != "" {
				logf(b.Progress, "%s is not for %s: %s", program.Name, p, why)
				continue
			}
			row, err := b.pack(program, p, papers)
			if err != nil || ctx.Err() != nil {
				return nil, cmp.Or(ctx.Err(), err)
			}
			rows = append(rows, row)
		}
	}
	if slices.Contains(b.Archived, programs.KubectlSNO) {
		if err := b.krew(rows); err != nil {
			return nil, err
		}
	}
	layouts, err := b.images()
	if err != nil {
		return nil, err
	}
	return append(rows, layouts...), b.sum()
}

func without(all, some []programs.Program) (rest []programs.Program) {
	for _, p := range all {
		if !slices.Contains(some, p) {
			rest = append(rest, p)
		}
	}
	return rest
}

func (b build) folder(p Platform) string { return filepath.Join(b.binaries, p.OS+"_"+p.Architecture) }

func (b build) target(p Platform) Target {
	return Target{Root: b.Root, Platform: p, Version: b.Source.Version, Cache: b.Cache}
}

// pack writes the archive and the SBOM of a program.
func (b build) pack(program programs.Program, p Platform, papers []entry) (Row, error) {
	binary := b.target(p).Binary(program)
	content, err := os.ReadFile(filepath.Join(b.folder(p), binary))
	if err != nil {
		return Row{}, err
	}
	list, err := SBOM(content, b.Source.Version)
	if err != nil {
		return Row{}, err
	}
	name := strings.Join([]string{program.Name, b.Source.Version, p.OS, p.Architecture}, "_")
	if err := os.WriteFile(filepath.Join(b.out, name+".cdx.json"), list, 0o644); err != nil {
		return Row{}, err
	}
	write, ending := writeTar, ".tar.gz"
	if p.OS == "windows" {
		write, ending = writeZip, ".zip"
	}
	row := Row{Program: program.Name, Platform: p.String(), File: name + ending}
	file := filepath.Join(b.out, row.File)
	if err := write(file, b.Source.Time, append([]entry{{binary, 0o755, content}}, papers...)); err != nil {
		return row, fmt.Errorf("write %s: %w", row.File, err)
	}
	row.SHA256, row.Size, err = digest(file)
	return row, err
}

// images writes one image for all architectures of each program.
func (b build) images() ([]Row, error) {
	var all []images.Image
	var rows []Row
	for _, program := range b.Shipped {
		var architectures []string
		for _, p := range b.Platforms {
			if p.OS != "linux" {
				continue
			}
			image, err := Wrap(program, filepath.Join(b.folder(p), program.Name), ImageOptions{
				Prefix: UnpullablePrefix, Architecture: p.Architecture, Version: b.Source.Version,
				Tag: strings.ReplaceAll(b.Source.Version, "+", "-"),
			})
			if err != nil {
				return nil, err
			}
			all = append(all, image.Image)
			architectures = append(architectures, p.String())
		}
		rows = append(rows, Row{Program: program.Name, Platform: strings.Join(architectures, ","), File: Images})
	}
	if len(all) == 0 {
		return nil, nil
	}
	folder := filepath.Join(b.out, Images)
	if err := images.WriteLayout(folder, all...); err != nil {
		return nil, err
	}
	found, err := images.ReadLayout(folder)
	if err != nil {
		return nil, err
	}
	for i, index := range found {
		rows[i].File, rows[i].SHA256, rows[i].Size = Images+" "+index.Name, index.Digest.Hex, index.Size
	}
	return rows, nil
}

// sum writes the checksums of all files.
func (b build) sum() error {
	var text strings.Builder
	err := filepath.WalkDir(b.out, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		sum, _, err := digest(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(b.out, path)
		fmt.Fprintf(&text, "%s  %s\n", sum, filepath.ToSlash(name))
		return err
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.out, Checksums), []byte(text.String()), 0o644)
}

func digest(file string) (string, int64, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", 0, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), size, err
}

// Print writes the rows as a table.
func Print(w io.Writer, rows []Row) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PROGRAM\tPLATFORM\tSIZE\tSHA256\tFILE")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%.12s\t%s\n", r.Program, r.Platform, size(r.Size), cmp.Or(r.SHA256, "-"), r.File)
	}
	return table.Flush()
}

func size(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

func logf(progress io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(progress, format+"\n", args...)
}

func since(started time.Time) time.Duration { return time.Since(started).Round(100 * time.Millisecond) }
