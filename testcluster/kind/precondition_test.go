// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/solonode/sno/testcluster/engine"
)

func TestLeftover(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("PATH", folder)
	for said, want := range map[string]error{"": nil, "a-control-plane\na-worker": ErrAlreadyExists} {
		client := "#!/bin/sh\necho '" + said + "'\n"
		if err := os.WriteFile(filepath.Join(folder, "docker"), []byte(client), 0o755); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
		err := Config{Name: "a"}.leftover(t.Context(), engine.Engine{})
		if !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), "a-control-plane, a-worker: remove it with `make kind-delete NAME=a`") {
			t.Errorf("%q: %v, want %v", said, err, want)
		}
	}
}
