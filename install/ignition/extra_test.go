// SPDX-License-Identifier: Apache-2.0

package ignition

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

// All files of a folder have their path, content and mode, while Butane sets 0644 or 0755, so that all users could read
// keys (R-BIP-24, U-INS-8).
func TestTree(t *testing.T) {
	dir := t.TempDir()
	for _, f := range tree() {
		fixture.Put(t, dir, "files/"+f.Path, string(f.Content))
		fixture.NoError(t, os.Chmod(filepath.Join(dir, "files", f.Path), f.Mode))
	}
	var b Builder
	fixture.Must(b.AddExtra("extra", os.DirFS(dir)))
	text := fixture.Must(b.Encode())
	ignitiontest.Validate(t, text)
	got := map[string]string{}
	for _, f := range read(t, text).Storage.Files {
		got[f.Path] = fmt.Sprintf("%o %q", *f.Mode, contentOf(t, f.Contents))
	}
	want := map[string]string{}
	for _, f := range tree() {
		want["/"+f.Path] = fmt.Sprintf("%o %q", f.Mode, f.Content)
	}
	fixture.Equal(t, "", want, got)
}
