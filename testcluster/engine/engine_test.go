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
	dir, err := os.MkdirTemp("", "engine")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("SNO_CACHE", dir)
	client := "#!/bin/sh\nexit 1\n"
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(client), 0o755); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/bin:/usr/bin")
	dead := filepath.Join(dir, "dead.sock")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	alive := filepath.Join(dir, "alive.sock")
	other, err := net.Listen("unix", alive)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{
		"unix://" + dead:        "the socket " + dead + " is there but nothing listens on it: its engine has ended",
		"unix://" + alive:       "the socket " + alive + " is there but the process that listens on it does not answer as an engine",
		"unix:///nowhere/s":     "there is no socket /nowhere/s",
		"tcp://192.0.2.1:12345": "nothing answers at tcp://192.0.2.1:12345",
	} {
		t.Setenv("DOCKER_HOST", host)
		_, err := Find(t.Context())
		if !errors.Is(err, ErrNoEngine) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "hack/engine start") {
			t.Errorf("%s: %v\nwant %s", host, err, want)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := Find(t.Context()); !errors.Is(err, ErrNoEngine) || !strings.Contains(err.Error(), "no docker command") {
		t.Error(err)
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
