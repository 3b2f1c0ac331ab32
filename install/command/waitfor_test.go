// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/files"

	"github.com/solonode/sno/install/ignition/ignitiontest"
	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

// What create writes is enough for the live system to serve its status and for another machine to follow it (R-BIP-3).
func TestWaitFor(t *testing.T) {
	dir := folder(t, nil, nil)
	succeeds(t, in(dir, plain)...)
	text := fixture.Must(os.ReadFile(filepath.Join(dir, liveConfig)))
	entries, units := ignitiontest.Read(t, text)
	if unit := units["sno-install-status.service"]; !strings.Contains(unit, "\nExecStart=/usr/bin/sno-install serve-status\n") {
		t.Errorf("the live system has no unit of the status: %q", unit)
	}
	live := root(t, map[string]string{node.LiveSettings: entries["/"+node.LiveSettings].Content})
	l := fixture.Must(net.Listen("tcp", "127.0.0.1:0"))
	address := l.Addr().String()
	fixture.NoError(t, l.Close())
	wait := func(ctx context.Context, dir string, wantCode int, want string) {
		t.Helper()
		code, _, errs := run(ctx, "wait-for", "install-complete", "--dir", dir, "--status-address", address, "--limit", "1s")
		if code != wantCode || !strings.Contains(errs, want) {
			t.Errorf("code %d, %s; want %d and %q", code, errs, wantCode, want)
		}
	}
	wait(t.Context(), dir, phase.ExitTimeout, "waiting for install-complete: "+address+": connect: connection refused")
	wait(t.Context(), t.TempDir(), phase.ExitInput, "auth/kubeconfig")
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	wait(interrupted, dir, 130, "interrupted; the same command continues")

	ctx, stop := context.WithCancel(t.Context())
	served := make(chan int)
	go func() {
		code, _, _ := run(ctx, "serve-status", "--root", live, "--listen", address)
		served <- code
	}()
	for { // until it listens
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			break
		}
	}
	wait(t.Context(), dir, phase.ExitTimeout, address+": no status: no command has begun")
	status := `{"command": "bootstrap-in-place", "exitCode": 2, "phases": [{"name": "write-disk", "state": "Failed", "error": "no such disk"}]}`
	fixture.NoError(t, files.Write(filepath.Join(live, node.StatusDir), []files.File{{Path: "bootstrap-in-place.json", Mode: 0o600, Content: []byte(status)}}))
	wait(t.Context(), dir, phase.ExitInput, "bootstrap-in-place: phase write-disk (1 of 1): no such disk")
	stop()
	if code := <-served; code != 130 && code != 0 {
		t.Errorf("serve-status ended with %d", code)
	}
}

// Without a certificate, as in a config of an older version, the status is not served, and the phases go on.
func TestNoStatus(t *testing.T) {
	text := fixture.Must(yaml.Marshal(node.Settings{Profile: "kubernetes", Created: "today"}))
	machine := root(t, map[string]string{node.LiveSettings: string(text), node.AllInOneSettings: string(text)})
	if code, _, errs := run(t.Context(), "serve-status", "--root", machine); code != phase.ExitInput || !strings.Contains(errs, node.LiveSettings) {
		t.Errorf("code %d, %s", code, errs)
	}
	_, _, errs := run(t.Context(), "aiokube", "--root", machine, "--status-dir", t.TempDir())
	for _, want := range []string{"Other machines cannot read the status, and the phases go on: ", "phase preflight", "image: the image has no program containerd of containerd"} {
		if !strings.Contains(errs, want) {
			t.Errorf("%q is not in %s", want, errs)
		}
	}
}
