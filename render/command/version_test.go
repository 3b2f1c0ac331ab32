// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	var out, errs bytes.Buffer
	if code := Main(t.Context(), []string{"--version"}, &out, &errs); code != 0 || !strings.HasPrefix(out.String(), "sno-render version ") {
		t.Errorf("%d, %q, %q", code, &out, &errs)
	}
}

func TestManPages(t *testing.T) {
	folder := t.TempDir()
	var out, errs bytes.Buffer
	if code := Main(t.Context(), []string{"man", folder}, &out, &errs); code != 0 {
		t.Fatalf("%d, %s", code, &errs)
	}
	for _, name := range []string{"sno-render.1", "sno-render-rotate.1"} {
		if page, err := os.ReadFile(filepath.Join(folder, name)); err != nil || !bytes.Contains(page, []byte(".SH OPTIONS")) {
			t.Errorf("%s: %v\n%s", name, err, page)
		}
	}
}
