// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func open(t *testing.T, archive, image string) v1.Image {
	t.Helper()
	tag, err := name.NewTag(image)
	if err != nil {
		t.Fatal(err)
	}
	read, err := tarball.ImageFromPath(archive, &tag)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	binary, further := filepath.Join(dir, "binary"), filepath.Join(dir, "further.tar")
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "lib/a.so", Mode: 0o644, Size: 1}), second(w.Write([]byte("a"))), w.Close(),
		os.WriteFile(binary, []byte("program"), 0o600), os.WriteFile(further, layer.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	all := []Image{
		{Name: "registry.invalid/sno/a:1", Files: map[string]string{"usr/bin/b": binary, "a": binary}, Entrypoint: []string{"/a"}, User: NonRootUser},
		{Name: "docker.io/library/cli:latest", Files: map[string]string{"c": binary}, Tar: further},
		{Name: "registry.invalid/sno/data:1", Files: map[string]string{"a": binary}, Data: map[string]string{"doc/b": binary}, Architecture: "s390x"},
	}
	file := filepath.Join(dir, "images.tar")
	var digests [2][]string
	for i := range digests {
		if err := Write(file, all...); err != nil {
			t.Fatal(err)
		}
		for _, image := range all {
			digest, err := open(t, file, image.Name).Digest()
			if err != nil {
				t.Fatal(err)
			}
			digests[i] = append(digests[i], digest.String())
		}
	}
	if diff := cmp.Diff(digests[0], digests[1]); diff != "" || digests[0][0] == digests[0][1] {
		t.Errorf("the same files gave other images: %v, %v", digests[0], digests[1])
	}

	config, got := read(t, file, all[0].Name)
	if config.Config.User != NonRootUser || !cmp.Equal(config.Config.Entrypoint, []string{"/a"}) || !config.Created.IsZero() {
		t.Errorf("%+v", config)
	}
	if diff := cmp.Diff(map[string]int64{"a": 0o755, "usr": 0o755, "usr/bin": 0o755, "usr/bin/b": 0o755}, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	config, got = read(t, file, all[2].Name)
	if diff := cmp.Diff(map[string]int64{"a": 0o755, "doc": 0o755, "doc/b": 0o644}, got); diff != "" || config.Architecture != "s390x" {
		t.Errorf("%s, files (-want +got):\n%s", config.Architecture, diff)
	}
}

func read(t *testing.T, archive, image string) (*v1.ConfigFile, map[string]int64) {
	t.Helper()
	read := open(t, archive, image)
	config, err := read.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]int64{}
	content := mutate.Extract(read)
	defer content.Close() //nolint:errcheck // it is only read
	for r := tar.NewReader(content); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		modes[header.Name] = header.Mode
	}
	return config, modes
}

func TestDigest(t *testing.T) {
	dir := t.TempDir()
	file, archive := filepath.Join(dir, "program"), filepath.Join(dir, "images.tar")
	digests := map[string]bool{}
	for _, content := range []string{"a", "b", "b"} {
		if err := errors.Join(os.WriteFile(file, []byte(content), 0o600),
			Write(archive, Image{Name: "registry.invalid/sno/a:1", Files: map[string]string{"a": file}})); err != nil {
			t.Fatal(err)
		}
		digest, err := Digest(archive, "registry.invalid/sno/a:1")
		if err != nil {
			t.Fatal(err)
		}
		digests[digest] = true
	}
	if len(digests) != 2 {
		t.Errorf("two contents have the digests %v", digests)
	}
	if _, err := Digest(archive, "registry.invalid/sno/b:1"); err == nil {
		t.Error("an image that is not in the archive has a digest")
	}
}

func TestWriteRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "images.tar")
	if err := Write(file, Image{Name: "no tag"}); !errors.Is(err, ErrImage) {
		t.Error(err)
	}
	if err := Write(file, Image{Name: "registry.invalid/sno/a:1"}); !errors.Is(err, ErrImage) {
		t.Error(err)
	}
	if err := CheckName("sno/a:1"); !errors.Is(err, ErrImage) {
		t.Errorf("a name that engines complete differently: %v", err)
	}
	twice := map[string]string{"a": file}
	if err := Write(file, Image{Name: "registry.invalid/sno/a:1", Files: twice, Data: twice}); !errors.Is(err, ErrImage) {
		t.Error(err)
	}
	if err := Write(file, Image{Name: "registry.invalid/sno/a:1", Files: map[string]string{"a": "/nowhere"}}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func second(_ int, err error) error { return err }
