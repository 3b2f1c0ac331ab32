// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/solonode/sno/render/files"
)

// CheckWritable returns the errors of Write in advance and leaves no files.
func TestReady(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	parent := t.TempDir()
	for name, test := range map[string]struct {
		dir     string
		replace bool
		want    error
		fails   bool
	}{
		"new":             {filepath.Join(parent, "new"), false, nil, false},
		"far below":       {filepath.Join(parent, "a", "b", "c"), false, nil, false},
		"has files":       {full, false, files.ErrNotEmpty, true},
		"may be replaced": {full, true, nil, false},
		"below a file":    {filepath.Join(full, "file", "below"), false, nil, true},
		"read-only":       {"/proc/sno-render", false, nil, true}, // not even root makes a folder there
	} {
		t.Run(name, func(t *testing.T) {
			err := files.CheckWritable(test.dir, test.replace)
			if (err != nil) != test.fails || test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("got %v, want an error: %t %v", err, test.fails, test.want)
			}
		})
	}
	entries, err := os.ReadDir(parent)
	if err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if _, err := os.Stat(filepath.Join(full, "file")); errors.Is(err, fs.ErrNotExist) {
		t.Error("a file is gone")
	}
}
