// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/mod/modfile"

	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/images"
)

// resolver is a program of a checkout with one module of the workspace, one dependency, and one with a replacement. It
// resolves names, for which cgo would use the C library.
var resolver = programs.Program{Name: "small", Module: "small", Package: "./cmd/small"}

// resolverCheckout writes the sources of resolver. Its dependencies are two of this module, so nothing is downloaded.
func resolverCheckout(t *testing.T) string {
	t.Helper()
	requirements, err := os.ReadFile(filepath.Join("..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.ParseLax("go.mod", requirements, nil)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, r := range file.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	sums, err := os.ReadFile(filepath.Join("..", "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	return folder(t, map[string]string{
		"go.work":      "go 1.26.0\n\nuse (\n\t./part\n\t./small\n)\n",
		"part/go.mod":  "module example.com/part\n\ngo 1.26.0\n",
		"part/part.go": "package part\n",
		"small/go.mod": "module example.com/small\n\ngo 1.26.0\n\nrequire (\n\texample.com/renamed v1.0.0\n\tgithub.com/google/go-cmp " +
			versions["github.com/google/go-cmp"] + "\n)\n\nreplace example.com/renamed => golang.org/x/mod " + versions["golang.org/x/mod"] + "\n",
		"small/go.sum": string(sums),
		"small/cmd/small/main.go": "package main\n\nimport (\n\t\"net\"\n\n\t\"example.com/renamed/semver\"\n\t_ \"example.com/part\"\n" +
			"\t\"github.com/google/go-cmp/cmp\"\n)\n\nfunc main() {\n\tnames, err := net.LookupHost(semver.Major(\"v1.2.3\"))\n" +
			"\tprintln(cmp.Equal(names, err))\n}\n",
	})
}

func image(t *testing.T, archive, called string) v1.Image {
	t.Helper()
	tag, err := name.NewTag(called)
	if err != nil {
		t.Fatal(err)
	}
	read, err := tarball.ImageFromPath(archive, &tag)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// files returns the files of an image.
func files(t *testing.T, read v1.Image) map[string]content {
	t.Helper()
	extracted := mutate.Extract(read)
	defer extracted.Close() //nolint:errcheck // it is only read
	all := map[string]content{}
	for _, f := range readTarStream(t, extracted) {
		all[f.Name] = f
	}
	return all
}

func TestImage(t *testing.T) {
	folder := t.TempDir()
	o := ImageOptions{Root: resolverCheckout(t), Programs: []programs.Program{resolver}}
	rows, err := WriteImages(t.Context(), folder, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 || !regexp.MustCompile(`^registry\.invalid/sno/small:[0-9a-f]{12}$`).MatchString(rows[0].Image) {
		t.Fatalf("%+v", rows)
	}
	var table bytes.Buffer
	if err := PrintImages(&table, rows); err != nil || !strings.Contains(table.String(), rows[0].Image+"  "+rows[0].Digest+"  "+rows[0].SBOM+"\n") {
		t.Errorf("%v\n%s", err, table.String())
	}

	read := image(t, filepath.Join(folder, ArchiveName), rows[0].Image)
	config, err := read.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || config.OS != "linux" || config.Architecture != runtime.GOARCH ||
		!cmp.Equal(config.Config.Entrypoint, []string{"/small"}) || len(config.Config.Cmd) > 0 {
		t.Errorf("%s, %s, %+v", config.OS, config.Architecture, config.Config)
	}
	if id, err := read.ConfigName(); err != nil || id.String() != rows[0].Digest {
		t.Errorf("%s is not %s, %v", rows[0].Digest, id, err)
	}
	got := files(t, read)
	modes := map[string]fs.FileMode{}
	for path, f := range got {
		modes[path] = f.Mode
	}
	if diff := cmp.Diff(map[string]fs.FileMode{"small": 0o755, "sbom/small.cdx.json": 0o644}, modes); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if written, err := os.ReadFile(rows[0].SBOM); err != nil || string(written) != got["sbom/small.cdx.json"].Text {
		t.Errorf("the SBOM next to the archive differs from the one in the image: %v", err)
	}
	static(t, []byte(got["small"].Text), runtime.GOARCH)
	lists(t, []byte(got["sbom/small.cdx.json"].Text), []byte(got["small"].Text))
	listsSmall(t, []byte(got["sbom/small.cdx.json"].Text))
	if _, err := SBOM([]byte("no program"), ""); err == nil {
		t.Error("an SBOM of a file that is not a program")
	}
}

// static fails if a program needs another file to start.
func static(t *testing.T, binary []byte, architecture string) {
	t.Helper()
	program, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("it is linked at run time: %v", p.Type)
		}
	}
	want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "s390x": elf.EM_S390, "ppc64le": elf.EM_PPC64}[architecture]
	if program.Machine != want {
		t.Errorf("it is for %v, want %v", program.Machine, want)
	}
}

// lists fails if an SBOM differs from what Go reads from the binary.
func lists(t *testing.T, list, binary []byte) {
	t.Helper()
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"stdlib": runtime.Version()}
	for _, module := range info.Deps {
		if module.Replace != nil && module.Replace.Version != "" {
			module = module.Replace
		}
		want[module.Path] = module.Version
	}
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(list), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	urls := map[string]bool{}
	for _, c := range *bom.Components {
		got[c.Name] = c.Version
		urls[c.PackageURL] = true
	}
	if diff := cmp.Diff(want, got); diff != "" || len(*bom.Components) != len(want) || len(urls) != len(want) {
		t.Errorf("%d components with %d URLs (-binary +SBOM):\n%s", len(*bom.Components), len(urls), diff)
	}
	if bom.SerialNumber != "" || bom.Metadata.Timestamp != "" {
		t.Errorf("another build would have another SBOM: %q, %q", bom.SerialNumber, bom.Metadata.Timestamp)
	}
}

// listsSmall fails if the list of small is not the one that is written by hand.
func listsSmall(t *testing.T, text []byte) {
	t.Helper()
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	var got []string
	versions := regexp.MustCompile(`@v?[0-9.]+$`)
	for _, c := range *bom.Components {
		got = append(got, c.Name+" "+versions.ReplaceAllString(c.PackageURL, "@VERSION"))
		if fromElsewhere := c.Name != "stdlib" && c.Name != "example.com/part"; fromElsewhere != (c.Hashes != nil) {
			t.Errorf("%s has the hashes %v", c.Name, c.Hashes)
		}
	}
	if diff := cmp.Diff([]string{
		"stdlib pkg:golang/stdlib@VERSION", "example.com/part pkg:golang/example.com/part", "golang.org/x/mod pkg:golang/golang.org/x/mod@VERSION",
		"github.com/google/go-cmp pkg:golang/github.com/google/go-cmp@VERSION",
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	program := bom.Metadata.Component
	if program.Name != "small" || program.PackageURL != "pkg:golang/example.com/small#cmd/small" || len(*(*bom.Dependencies)[0].Dependencies) != len(got) {
		t.Errorf("%+v", program)
	}
}

func TestPackageURL(t *testing.T) {
	for want, module := range map[string][2]string{
		"pkg:golang/github.com/burntsushi/toml@v1.4.0":                   {"github.com/BurntSushi/toml", "v1.4.0"},
		"pkg:golang/github.com/peterbourgon/diskv@v2.0.1%2Bincompatible": {"github.com/peterbourgon/diskv", "v2.0.1+incompatible"},
		"pkg:golang/example.com/part":                                    {"example.com/part", "(devel)"},
	} {
		if got := packageURL(module[0], module[1]); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Two checkouts in different folders give the same image. Other sources have another tag.
func TestReproducible(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds from two checkouts; make proof runs it")
	}
	write := func(root string) ImageRow {
		folder := t.TempDir()
		rows, err := WriteImages(t.Context(), folder, ImageOptions{Root: root, Programs: []programs.Program{resolver}})
		if err != nil {
			t.Fatal(err)
		}
		for path, f := range files(t, image(t, filepath.Join(folder, ArchiveName), rows[0].Image)) {
			if strings.Contains(f.Text, root) {
				t.Errorf("%s has the path of the checkout in it", path)
			}
		}
		rows[0].SBOM = ""
		return rows[0]
	}
	root := resolverCheckout(t)
	first := write(root)
	if second := write(resolverCheckout(t)); first != second {
		t.Errorf("%+v is not %+v", first, second)
	}
	main := filepath.Join(root, "small", "cmd", "small", "main.go")
	text, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(main, bytes.Replace(text, []byte("v1.2.3"), []byte("v1.2.4"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed := write(root); changed.Image == first.Image {
		t.Errorf("other sources have the name %s too", changed.Image)
	}
}

func TestRefuses(t *testing.T) {
	root := resolverCheckout(t)
	for what, o := range map[string]ImageOptions{
		"no registry": {Prefix: "sno/"}, "no name": {Prefix: "registry.invalid/SNO/"}, "no tag": {Tag: "a/b"},
	} {
		o.Root, o.Programs = root, []programs.Program{resolver}
		if _, err := Build(t.Context(), t.TempDir(), o); !errors.Is(err, ErrNames) {
			t.Errorf("%s: %v", what, err)
		}
	}
	o := ImageOptions{Root: root, Programs: []programs.Program{resolver}, Architecture: "abacus"}
	if _, err := Build(t.Context(), t.TempDir(), o); err == nil || !strings.Contains(err.Error(), "go tool dist list") || errors.Is(err, images.ErrImage) {
		t.Error(err)
	}
}
