// SPDX-License-Identifier: Apache-2.0

package ignition

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/install/ignition/ignitiontest"
	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/render/files"
)

// tree returns files as in a user's folder: texts, keys, programs, names and bytes that need escapes, and random sizes
// of all of these.
func tree() []files.File {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	made := []files.File{
		{Path: "etc/chrony.conf", Mode: 0o644, Content: []byte("server ntp.example.com iburst\n")},
		{Path: "etc/empty", Mode: 0o644},
		{Path: "etc/keys/tls.key", Mode: 0o600, Content: []byte("-----BEGIN PRIVATE KEY-----\n")},
		{Path: "etc/.hidden/ein Name %41+&#.conf", Mode: 0o640, Content: []byte("100 % näher & <b> # ? + \x00")},
		{Path: "usr/local/bin/check", Mode: 0o755, Content: []byte("#!/bin/sh\nexec true\n")},
		{Path: "var/all", Mode: 0o644, Content: all},
		{Path: "var/large.yaml", Mode: 0o600, Content: []byte(strings.Repeat("kind: Pod\n", 5000))},
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same tree each time
	for i := range 60 {
		content := binary(uint64(i), random.IntN(2000))
		if i%3 > 0 {
			content = []byte(strings.Repeat(string(all[32+i:40+i]), random.IntN(60)))
		}
		made = append(made, files.File{Path: fmt.Sprintf("srv/%d/%d", i%7, i), Mode: []fs.FileMode{0o600, 0o644, 0o755}[i%3], Content: content})
	}
	return made
}

// Paths and contents are those of Butane, and no longer. Modes differ intentionally: Butane sets 0644 or, for
// executables, 0755, so that all users could read keys (R-BIP-24, U-INS-8).
func TestTreeAsButane(t *testing.T) {
	dir := t.TempDir()
	var local strings.Builder
	for _, f := range tree() {
		path := filepath.Join(dir, "files", f.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // of the test
			t.Fatal(err)
		}
		fixture.NoError(t, errors.Join(os.WriteFile(path, f.Content, f.Mode), os.Chmod(path, f.Mode)))
		fmt.Fprintf(&local, "  - {path: %q, contents: {local: %q}}\n", "/local/"+f.Path, "files/"+f.Path)
	}
	butane := read(t, ignitiontest.Butane(t, dir, "variant: fcos\nversion: 1.2.0\nstorage:\n  trees:\n  - local: files\n  files:\n"+local.String()))

	var b Builder
	fixture.Must(b.AddExtra("extra", os.DirFS(dir)))
	text := fixture.Must(b.Encode())
	ignitiontest.Validate(t, text)
	parsed := read(t, text)

	contents, modes, lengths := map[string]string{}, map[string]int{}, map[string]int{}
	for _, f := range parsed.Storage.Files {
		contents[f.Path], modes[f.Path], lengths[f.Path] = contentOf(t, f.Contents), *f.Mode, len(*f.Contents.Source)
	}
	if len(contents) != len(tree()) {
		t.Errorf("%d of %d files", len(contents), len(tree()))
	}
	fromTree, fromLocal := map[string]string{}, map[string]string{}
	for _, f := range butane.Storage.Files {
		path, one := strings.CutPrefix(f.Path, "/local")
		if one {
			fromLocal[path] = contentOf(t, f.Contents)
			continue
		}
		fromTree[path] = contentOf(t, f.Contents)
		mode := 0o644
		if modes[path]&0o100 != 0 {
			mode = 0o755
		}
		if *f.Mode != mode {
			t.Errorf("Butane's mode of %s is %o, which this test does not expect", path, *f.Mode)
		}
		if lengths[path] > len(*f.Contents.Source) {
			t.Errorf("%s takes %d characters, and with Butane %d", path, lengths[path], len(*f.Contents.Source))
		}
	}
	if diff := cmp.Diff(fromTree, contents); diff != "" {
		t.Errorf("as storage.trees (-Butane +got):\n%s", diff)
	}
	if diff := cmp.Diff(fromLocal, contents); diff != "" {
		t.Errorf("as local files (-Butane +got):\n%s", diff)
	}
	for _, f := range tree() {
		if modes["/"+f.Path] != int(f.Mode) {
			t.Errorf("mode of %s is %o, and was %o", f.Path, modes["/"+f.Path], f.Mode)
		}
	}
}
