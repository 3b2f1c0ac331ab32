// SPDX-License-Identifier: Apache-2.0

package nodemachine

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Files keep their permissions, and root owns them, whichever user runs this.
func TestPackFolder(t *testing.T) {
	root := t.TempDir()
	secrets := filepath.Join(root, "etc", "secrets")
	if err := os.MkdirAll(secrets, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]fs.FileMode{"tls.key": 0o600, "run.sh": 0o700} {
		if err := os.WriteFile(filepath.Join(secrets, name), []byte(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(secrets, 0o700); err != nil {
		t.Fatal(err)
	}
	files, err := Folder(root)
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := pack(&archive, files); err != nil {
		t.Fatal(err)
	}
	type entry struct {
		Name     string
		Type     byte
		Mode     int64
		UID, GID int
		Content  string
	}
	var got []entry
	for r := tar.NewReader(&archive); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, entry{header.Name, header.Typeflag, header.Mode, header.Uid, header.Gid, string(content)})
	}
	want := []entry{
		{Name: "etc/", Type: tar.TypeDir, Mode: 0o755},
		{Name: "etc/secrets/", Type: tar.TypeDir, Mode: 0o700},
		{Name: "etc/secrets/run.sh", Type: tar.TypeReg, Mode: 0o700, Content: "run.sh"},
		{Name: "etc/secrets/tls.key", Type: tar.TypeReg, Mode: 0o600, Content: "tls.key"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFolderRefusesLinks(t *testing.T) {
	root := t.TempDir()
	if err := os.Symlink(os.DevNull, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	if files, err := Folder(root); !errors.Is(err, ErrFile) {
		t.Errorf("%v, %v", files, err)
	}
}

func TestPackRefusesPathsOutside(t *testing.T) {
	for _, path := range []string{"/etc/passwd", "../passwd", "etc/../../passwd", "", "."} {
		if err := pack(io.Discard, []File{{Path: path, Mode: 0o644}}); !errors.Is(err, ErrFile) {
			t.Errorf("%q: %v", path, err)
		}
	}
}
