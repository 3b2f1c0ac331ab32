// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindErrors(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SNO_CACHE", dir)
	client := "#!/bin/sh\necho nothing answers at $DOCKER_HOST >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(client), 0o755); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/bin:/usr/bin")
	t.Setenv("DOCKER_HOST", "tcp://192.0.2.1:12345")
	for want, path := range map[string]string{"nothing answers at tcp://192.0.2.1:12345": os.Getenv("PATH"), "no docker command": t.TempDir()} {
		t.Setenv("PATH", path)
		if _, err := Find(t.Context()); !errors.Is(err, ErrNoEngine) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "hack/engine start") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestFindOwn(t *testing.T) {
	dir, err := os.MkdirTemp("", "engine")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("SNO_CACHE", dir)
	t.Setenv("DOCKER_HOST", "")
	client := "#!/bin/sh\n[ \"$DOCKER_HOST\" = unix://" + dir + "/engine/docker.sock ]\n"
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "engine"), 0o750),
		os.WriteFile(filepath.Join(dir, "docker"), []byte(client), 0o755)); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/bin:/usr/bin")
	if _, err := Find(t.Context()); !errors.Is(err, ErrNoEngine) {
		t.Errorf("an engine without a socket: %v", err)
	}
	own, err := net.Listen("unix", filepath.Join(dir, "engine", "docker.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Close() })
	e, err := Find(t.Context())
	if err != nil || e.Host != "unix://"+dir+"/engine/docker.sock" {
		t.Errorf("%+v, %v", e, err)
	}
}
