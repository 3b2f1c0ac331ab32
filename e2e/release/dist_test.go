// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/solonode/sno/e2e/programs"
)

var (
	small = programs.Program{Name: "small", Module: "cli", Package: "./cmd/small"}
	plain = programs.Program{Name: "plain", Module: "plain", Package: "./cmd/plain"}
)

// checkout has two small programs, one of them with a variable for the version. Their man
// pages have the text of a function.
func checkout(t *testing.T, page string) string {
	t.Helper()
	program := `package main

import (
	"fmt"
	"os"
	"time"
IMPORT)

func main() {
	if os.Args[1] == "man" {
		text := fmt.Sprint(` + page + `)
		if err := os.WriteFile(os.Args[2]+"/program.1", []byte(text), 0o600); err != nil {
			panic(err)
		}
		return
	}
	fmt.Println(os.Args[1:], VERSION, time.Second)
}
`
	root := folder(t, map[string]string{
		"LICENSE": "license", "NOTICE": "notice", "go.work": "go 1.26.0\n\nuse (\n\t./cli\n\t./plain\n)\n",
		"cli/go.mod":                   "module github.com/solonode/sno/cli\n\ngo 1.26.0\n",
		"cli/cli.go":                   "package cli\n\nvar linkedVersion string\n\nfunc Version() string { return linkedVersion }\n",
		"cli/cmd/small/main.go":        strings.NewReplacer("IMPORT", "\t\"github.com/solonode/sno/cli\"\n", "VERSION", "cli.Version()").Replace(program),
		"plain/go.mod":                 "module github.com/solonode/sno/plain\n\ngo 1.26.0\n",
		"plain/cmd/plain/main.go":      strings.NewReplacer("IMPORT", "", "VERSION", `"none"`).Replace(program),
		"cli/cmd/small/ignored/ignore": "",
	})
	cmd := exec.CommandContext(t.Context(), "git", "init", "--quiet")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return root
}

func options(root string, platforms ...Platform) Options {
	return Options{
		Root: root, Source: Source{Version: "v0.1.0", Time: at}, Archived: []programs.Program{small, plain}, Shipped: []programs.Program{small},
		Platforms: platforms, Progress: io.Discard,
	}
}

// A build from another folder has the same bytes, unless something takes a value from elsewhere, such as the clock.
func TestWrite(t *testing.T) {
	root, out := checkout(t, `"page"`), filepath.Join(t.TempDir(), "dist")
	linux := Platform{"linux", runtime.GOARCH}
	o := options(root, linux)
	rows, err := Write(t.Context(), out, o)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := Print(&text, rows); err != nil || strings.Count(text.String(), "\n") != 4 || strings.Contains(text.String(), " - ") {
		t.Errorf("%v\n%s", err, &text)
	}
	suffix := "_v0.1.0_linux_" + runtime.GOARCH
	got := map[string]bool{}
	if err := filepath.WalkDir(out, func(path string, entry fs.DirEntry, err error) error {
		if name, _ := filepath.Rel(out, path); err == nil && !entry.IsDir() {
			got[name] = true
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{Checksums: true, "images/index.json": true, "images/oci-layout": true}
	for _, program := range []string{"small", "plain"} {
		want[program+suffix+".tar.gz"], want[program+suffix+".cdx.json"] = true, true
	}
	for name := range got {
		if strings.HasPrefix(name, "images/blobs/sha256/") {
			want[name] = true
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 7+4 {
		t.Errorf("%d files (-want +got):\n%s", len(got), diff)
	}
	sums := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", Checksums)
	sums.Dir = out
	if text, err := sums.CombinedOutput(); err != nil || strings.Count(string(text), ": OK\n") != len(got)-1 {
		t.Errorf("%v\n%s", err, text)
	}
	archived := map[string]string{}
	var binary string
	for _, e := range readTar(t, filepath.Join(out, "small"+suffix+".tar.gz")) {
		archived[e.Name] = e.Text
		if e.Name == "small" {
			binary, archived[e.Name] = e.Text, "binary"
		}
	}
	if diff := cmp.Diff(map[string]string{
		"LICENSE": "license", "NOTICE": "notice", "small": "binary", "man/man1/program.1": "page",
		"completion/bash/small": "[completion bash] v0.1.0 1s\n", "completion/zsh/_small": "[completion zsh] v0.1.0 1s\n",
		"completion/fish/small.fish": "[completion fish] v0.1.0 1s\n", "completion/powershell/small.ps1": "[completion powershell] v0.1.0 1s\n",
	}, archived); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if inImage := readImages(t, filepath.Join(out, Images), "sno/small:v0.1.0", linux)[0]["small"].Text; inImage != binary || binary == "" {
		t.Errorf("the program in the image (%d bytes) is not that of the archive (%d bytes)", len(inImage), len(binary))
	}

	if err := Check(t.Context(), out, o, false); err != nil {
		t.Error(err)
	}
	changed := options(checkout(t, `time.Now().UnixNano()`), linux)
	if _, err := Write(t.Context(), out, changed); err != nil {
		t.Fatal(err)
	}
	err = Check(t.Context(), out, changed, false)
	if !errors.Is(err, ErrDiffers) || !strings.Contains(err.Error(), "small"+suffix+".tar.gz has the checksums") || strings.Contains(err.Error(), "cdx") {
		t.Errorf("man pages that have a time: %v", err)
	}
}

// readImages returns the files of an image of a layout for each platform, and fails if it has others.
func readImages(t *testing.T, folder, name string, platforms ...Platform) (all []map[string]content) {
	t.Helper()
	top, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(top); err != nil {
		t.Errorf("the layout is invalid: %v", err)
	}
	indexes, err := partial.FindIndexes(top, match.Name(name))
	if err != nil || len(indexes) != 1 {
		t.Fatalf("%d images are called %s: %v", len(indexes), name, err)
	}
	for _, p := range platforms {
		found, err := partial.FindImages(indexes[0], match.Platforms(v1.Platform{OS: p.OS, Architecture: p.Architecture}))
		if err != nil || len(found) != 1 {
			t.Fatalf("%d images for %s: %v", len(found), p, err)
		}
		all = append(all, files(t, found[0]))
	}
	if list, err := indexes[0].IndexManifest(); err != nil || len(list.Manifests) != len(platforms) {
		t.Errorf("%+v, %v, want %v", list, err, platforms)
	}
	return all
}

// All platforms have archives, and those of linux are in one image.
func TestWritePlatforms(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles Go's own library for two other platforms")
	}
	out := filepath.Join(t.TempDir(), "dist")
	platforms := []Platform{{"linux", "amd64"}, {"linux", "arm64"}, {"windows", "arm64"}}
	o := options(checkout(t, `"page"`), platforms...)
	if _, err := Write(t.Context(), out, o); err != nil {
		t.Fatal(err)
	}
	inImages := readImages(t, filepath.Join(out, Images), "sno/small:v0.1.0", platforms[:2]...)
	for i, p := range platforms {
		ending, name, read := ".tar.gz", "small", readTar
		if p.OS == "windows" {
			ending, name, read = ".zip", "small.exe", readZip
		}
		found := false
		for _, e := range read(t, filepath.Join(out, "small_v0.1.0_"+p.OS+"_"+p.Architecture+ending)) {
			if e.Name != name {
				continue
			}
			found = true
			if p.OS != "linux" {
				continue
			}
			if inImages[i]["small"].Text != e.Text {
				t.Errorf("%s: the program in the image is not that of the archive", p)
			}
			static(t, []byte(e.Text), p.Architecture)
		}
		if !found {
			t.Errorf("%s: no %s", p, name)
		}
	}
}

// Other people's files stay, and a failed build leaves the last one.
func TestWriteRefuses(t *testing.T) {
	other := folder(t, map[string]string{"letter": "text"})
	if _, err := Write(t.Context(), other, options(checkout(t, `"page"`), here())); !errors.Is(err, ErrInput) {
		t.Error(err)
	}
	earlier := filepath.Join(folder(t, map[string]string{"dist/" + Checksums: "text"}), "dist")
	for name, page := range map[string]string{"does not compile": "undefined", "stops": `os.Args[7]`} {
		if _, err := Write(t.Context(), earlier, options(checkout(t, page), here())); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, file := range []string{filepath.Join(other, "letter"), filepath.Join(earlier, Checksums)} {
		if text, err := os.ReadFile(file); err != nil || string(text) != "text" {
			t.Errorf("%s: %q, %v", filepath.Base(file), text, err)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(earlier)); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}
