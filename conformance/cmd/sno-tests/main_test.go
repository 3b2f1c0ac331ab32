// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/solonode/sno/conformance/extension"
)

func TestVersionAndManPages(t *testing.T) {
	var out, errs bytes.Buffer
	folder := t.TempDir()
	program := extension.Program{Out: &out, Err: &errs, Further: []*cobra.Command{newManPages()}}
	for _, args := range [][]string{{"--version"}, {"man", folder}} {
		if code := program.Main(t.Context(), args); code != 0 {
			t.Fatalf("%v: %d, %s", args, code, &errs)
		}
	}
	if !strings.HasPrefix(out.String(), "sno-tests version ") {
		t.Errorf("%q", &out)
	}
	for _, name := range []string{"sno-tests.1", "sno-tests-run.1"} {
		if page, err := os.ReadFile(filepath.Join(folder, name)); err != nil || !bytes.Contains(page, []byte(".SH OPTIONS")) {
			t.Errorf("%s: %v\n%s", name, err, page)
		}
	}
}
