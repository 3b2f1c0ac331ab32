// SPDX-License-Identifier: Apache-2.0

package mustgather

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func archiveOf(t *testing.T, sizes ...int) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "must-gather.tar.gz")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	zipped := gzip.NewWriter(out)
	archive := tar.NewWriter(zipped)
	for i, size := range sizes {
		for _, name := range []string{"must-gather/namespaces/a/core/pods/%d.yaml", "must-gather/namespaces/a/pods/%d/current.log"} {
			header := &tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprintf(name, i), Size: int64(size), Mode: 0o600}
			if err := archive.WriteHeader(header); err != nil {
				t.Fatal(err)
			}
			if _, err := archive.Write(make([]byte, size)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, end := range []func() error{archive.Close, zipped.Close, out.Close} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

// An archive that would fill the disk is refused, and no object is cut. Logs do not count, since they are not unpacked.
func TestUnpackIsLimited(t *testing.T) {
	most := limits{file: 100, total: 250, files: 3}
	for name, test := range map[string]struct {
		sizes []int
		want  string
	}{
		"at the limits":     {[]int{100, 100, 50}, ""},
		"a large object":    {[]int{101}, "0.yaml: too large: it has 101 bytes, at most 100 are read"},
		"large altogether":  {[]int{100, 100, 51}, "2.yaml: too large: the objects have more than 250 bytes"},
		"too many together": {[]int{1, 1, 1, 1}, "3.yaml: too large: there are more than 3 objects"},
	} {
		err := unpack(archiveOf(t, test.sizes...), t.TempDir(), most)
		if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, errTooLarge) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
