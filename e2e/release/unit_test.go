// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/e2e/programs"
)

var at = time.Date(2026, 11, 27, 3, 4, 5, 0, time.UTC)

func TestDescribe(t *testing.T) {
	const hash = "9719b1389a36aaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for name, test := range map[string]struct {
		here, before string
		dirty        bool
		epoch, want  string
		at           int64
	}{
		"released":         {here: "v0.1.0", before: "v0.1.0", want: "v0.1.0", at: at.Unix()},
		"before any tag":   {want: "v0.0.0-20261127030405-9719b1389a36", at: at.Unix()},
		"after a release":  {before: "v0.1.0", want: "v0.1.1-0.20261127030405-9719b1389a36", at: at.Unix()},
		"later major":      {before: "v2.1.0", want: "v2.1.1-0.20261127030405-9719b1389a36", at: at.Unix()},
		"changed files":    {here: "v0.1.0", before: "v0.1.0", dirty: true, want: "v0.1.0+dirty", at: at.Unix()},
		"time of packages": {here: "v0.1.0", before: "v0.1.0", epoch: "7", want: "v0.1.0", at: 7},
	} {
		got, err := describe("1795748645", hash, test.here, test.before, test.dirty, test.epoch)
		if err != nil || got.Version != test.want || got.Time.Unix() != test.at {
			t.Errorf("%s: %+v, %v, want %s", name, got, err, test.want)
		}
	}
	for _, invalid := range [][2]string{{"", ""}, {"1", "noon"}} {
		if _, err := describe(invalid[0], hash, "", "", false, invalid[1]); err == nil {
			t.Errorf("%q is a time", invalid)
		}
	}
	if got := highest("cli/v0.9.0\ncli/v0.10.0\ncli/vnext\ncli/v0.2.0"); got != "v0.10.0" {
		t.Errorf("the highest is %s", got)
	}
}

func TestDescribeCheckout(t *testing.T) {
	for name, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a",
		"GIT_COMMITTER_EMAIL": "a@example.com", "GIT_COMMITTER_DATE": "@1795748645 +0000", "SOURCE_DATE_EPOCH": "",
	} {
		t.Setenv(name, value)
	}
	root := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		if _, err := git(t.Context(), root, args...); err != nil {
			t.Fatal(err)
		}
	}
	is := func(prefix, suffix string) {
		t.Helper()
		got, err := Describe(t.Context(), root)
		if err != nil || !strings.HasPrefix(got.Version, prefix) || !strings.HasSuffix(got.Version, suffix) || !got.Time.Equal(at) {
			t.Errorf("%+v, %v, want %s...%s", got, err, prefix, suffix)
		}
	}
	run("init", "--quiet")
	if _, err := Describe(t.Context(), root); err == nil {
		t.Error("a repository without a commit has a version")
	}
	run("commit", "--quiet", "--allow-empty", "--message=begin")
	is("v0.0.0-20261127030405-", "")
	run("tag", "cli/v0.1.0")
	run("tag", "topology/v9.0.0")
	is("v0.1.0", "v0.1.0")
	if err := os.WriteFile(filepath.Join(root, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	is("v0.1.0", "v0.1.0")
	run("add", "new")
	is("v0.1.0", "+dirty")
	run("commit", "--quiet", "--message=change")
	is("v0.1.1-0.20261127030405-", "")
}

func TestSelect(t *testing.T) {
	names := func(all []programs.Program) (names []string) {
		for _, p := range all {
			names = append(names, p.Name)
		}
		return names
	}
	for name, test := range map[string]struct{ only, archived, shipped []string }{
		"all":            {nil, names(Archived()), names(programs.Shipped())},
		"both":           {[]string{"kubectl-sno"}, []string{"kubectl-sno"}, []string{"kubectl-sno"}},
		"an archive":     {[]string{"approve"}, []string{"approve"}, nil},
		"one of each":    {[]string{"auth-controller", "sno-render"}, []string{"sno-render"}, []string{"auth-controller"}},
		"the same twice": {[]string{"approve", "approve"}, []string{"approve"}, nil},
	} {
		archived, shipped, err := Select(test.only)
		if err != nil || !slices.Equal(names(archived), test.archived) || !slices.Equal(names(shipped), test.shipped) {
			t.Errorf("%s: %v, %v, %v", name, names(archived), names(shipped), err)
		}
	}
	if _, _, err := Select([]string{"approve", "kubectl"}); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "kubectl-sno") {
		t.Error(err)
	}
	if all, err := ParsePlatforms(nil); err != nil || len(all) != 6 {
		t.Errorf("%v, %v", all, err)
	}
	one := Platform{"windows", "arm64"}
	if some, err := ParsePlatforms([]string{one.String(), one.String()}); err != nil || !slices.Equal(some, []Platform{one}) {
		t.Errorf("%v, %v", some, err)
	}
	if _, err := ParsePlatforms([]string{"linux"}); !errors.Is(err, ErrInput) {
		t.Error(err)
	}
}

func TestOmitted(t *testing.T) {
	var got []string
	for _, program := range Archived() {
		for _, p := range Platforms() {
			if Omitted(program, p) != "" {
				got = append(got, program.Name+" "+p.String())
			}
		}
	}
	want := []string{"sno-install windows/amd64", "sno-install windows/arm64", "sno-render windows/amd64", "sno-render windows/arm64"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// content is what a reader finds in an archive.
type content struct {
	Name, Text string
	Mode       fs.FileMode
	Time       time.Time
	Owner      string
}

func readTar(t *testing.T, file string) []content {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	compressed, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if !compressed.ModTime.IsZero() || compressed.Header.Name != "" {
		t.Errorf("the compression has a name or a time: %+v", compressed.Header)
	}
	return readTarStream(t, compressed)
}

// readTarStream returns the files of an archive.
func readTarStream(t *testing.T, from io.Reader) (all []content) {
	t.Helper()
	for r := tar.NewReader(from); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		owner := header.Uname + header.Gname
		if header.Uid+header.Gid != 0 {
			owner += "numeric"
		}
		if header.Typeflag == tar.TypeReg {
			all = append(all, content{header.Name, string(text), fs.FileMode(header.Mode), header.ModTime.UTC(), owner}) //nolint:gosec // modes of files
		}
	}
}

func readZip(t *testing.T, file string) (all []content) {
	t.Helper()
	r, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // it is only read
	for _, f := range r.File {
		text, err := fs.ReadFile(r, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, content{f.Name, string(text), f.Mode(), f.Modified.UTC(), ""})
	}
	return all
}

func TestArchives(t *testing.T) {
	entries := []entry{{"program", 0o755, []byte("p")}, {"LICENSE", 0o644, []byte("l")}, {"man/man1/program.1", 0o644, nil}}
	want := []content{{"LICENSE", "l", 0o644, at, ""}, {"man/man1/program.1", "", 0o644, at, ""}, {"program", "p", 0o755, at, ""}}
	for name, format := range map[string]struct {
		write func(string, time.Time, []entry) error
		read  func(*testing.T, string) []content
	}{"tar": {writeTar, readTar}, "zip": {writeZip, readZip}} {
		var files [3]string
		for i := range files {
			files[i] = filepath.Join(t.TempDir(), "archive")
			given, when := slices.Clone(entries), at.Add(time.Millisecond)
			switch i {
			case 1: // the same in another time zone and order
				slices.Reverse(given)
				when = at.In(time.FixedZone("", 3600))
			case 2:
				when = at.Add(2 * time.Second)
			}
			if err := format.write(files[i], when, given); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, format.read(t, files[0])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		var sums [3]string
		for i, file := range files {
			sum, _, err := digest(file)
			if err != nil {
				t.Fatal(err)
			}
			sums[i] = sum
		}
		if sums[0] != sums[1] || sums[0] == sums[2] {
			t.Errorf("%s: %v", name, sums)
		}
		if err := format.write(filepath.Join(t.TempDir(), "none", "archive"), at, entries); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	}
}

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestCompare(t *testing.T) {
	first := "01  a\n02  b/c\n"
	for name, test := range map[string]struct{ second, want string }{
		"same":    {first, ""},
		"missing": {"01  a\n", `b/c has the checksums "02" and ""`},
		"more":    {first + "03  b/d\n", `b/d has the checksums "" and "03"`},
		"other":   {"01  a\n04  b/c\n", `b/c has the checksums "02" and "04"`},
	} {
		err := compare(folder(t, map[string]string{Checksums: first}), folder(t, map[string]string{Checksums: test.second}))
		if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, ErrDiffers) || !strings.HasSuffix(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
	if err := compare(t.TempDir(), t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestReplaceable(t *testing.T) {
	for name, test := range map[string]struct {
		folder string
		want   error
	}{
		"none":             {filepath.Join(t.TempDir(), "none"), nil},
		"empty":            {t.TempDir(), nil},
		"an earlier build": {folder(t, map[string]string{Checksums: "", "a": ""}), nil},
		"other files":      {folder(t, map[string]string{"a": ""}), ErrInput},
	} {
		if err := replaceable(test.folder); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestManifest(t *testing.T) {
	b := build{Options: Options{Source: Source{Version: "v0.1.0"}, Address: "https://example.com/v0.1.0/"}, out: t.TempDir()}
	if err := b.krew([]Row{
		{Program: "kubectl-sno", Platform: "linux/arm64", File: "a.tar.gz", SHA256: "01"}, {Program: "approve", Platform: "linux/arm64", File: "b.tar.gz"},
		{Program: "kubectl-sno", Platform: "windows/amd64", File: "c.zip", SHA256: "02"},
	}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(b.out, Manifest))
	if err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(string(text), "  platforms:\n")
	if diff := cmp.Diff(`  - bin: kubectl-sno
    selector:
      matchLabels:
        arch: arm64
        os: linux
    sha256: "01"
    uri: https://example.com/v0.1.0/a.tar.gz
  - bin: kubectl-sno.exe
    selector:
      matchLabels:
        arch: amd64
        os: windows
    sha256: "02"
    uri: https://example.com/v0.1.0/c.zip
  shortDescription: Plan, make and undo changes for a single node
  version: v0.1.0
`, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A stand-in for tools/run, so that krew is not built.
func TestCheckKrew(t *testing.T) {
	platform := here().String()
	for name, test := range map[string]struct{ validate, install, installed, want string }{
		"accepted":            {"true", "true", "kubectl sno version v0.1.0", ""},
		"an invalid manifest": {"{ echo invalid selector; false; }", "true", "", "invalid selector"},
		"another checksum":    {"true", "{ echo checksum does not match; false; }", "", "checksum does not match"},
		"another program":     {"true", "true", "kubectl sno version v0.0.9", "v0.0.9"},
	} {
		root := folder(t, map[string]string{"tools/run": `#!/bin/sh
case "$*" in
"validate-krew-manifest -manifest out/sno.yaml -skip-install") ` + test.validate + ` ;;
"krew install --manifest=out/sno.yaml --archive=out/file") mkdir "$KREW_ROOT/bin" && printf '#!/bin/sh\necho ` + test.installed +
			`\n' >"$KREW_ROOT/bin/kubectl-sno" && chmod 755 "$KREW_ROOT/bin/kubectl-sno" && ` + test.install + ` ;;
*) echo "unexpected: $*"; false ;;
esac
`})
		o := Options{Root: root, Source: Source{Version: "v0.1.0"}, Progress: io.Discard}
		err := CheckKrew(t.Context(), "out", o, []Row{{Program: "kubectl-sno", Platform: platform, File: "file"}})
		if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, ErrKrew) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
