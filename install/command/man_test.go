// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/solonode/sno/install/internal/fixture"
)

func TestVersion(t *testing.T) {
	var out, errs bytes.Buffer
	if code := Main(t.Context(), []string{"--version"}, &out, &errs); code != 0 || !strings.HasPrefix(out.String(), "sno-install version ") {
		t.Errorf("%d, %q, %q", code, &out, &errs)
	}
}

// TestManPages also fails if a page depends on the time: archives of a second build would differ.
func TestManPages(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "0")
	folder := t.TempDir()
	var out, errs bytes.Buffer
	if code := Main(t.Context(), []string{"man", folder}, &out, &errs); code != 0 {
		t.Fatalf("%d, %s", code, &errs)
	}
	for _, name := range []string{"sno-install.1", "sno-install-rotate.1"} {
		if page, err := os.ReadFile(filepath.Join(folder, name)); err != nil || !bytes.Contains(page, []byte(".SH OPTIONS")) {
			t.Errorf("%s: %v\n%s", name, err, page)
		}
	}
	pages, err := filepath.Glob(filepath.Join(folder, "*.1"))
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	for _, name := range pages {
		page := fixture.Must(os.ReadFile(name))
		if today := time.Now().UTC().Format("20060102"); bytes.Contains(page, []byte(today)) {
			t.Errorf("%s contains the time %s:\n%s", name, today, page)
		}
	}
}
