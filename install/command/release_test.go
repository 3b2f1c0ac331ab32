// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"cmp"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/solonode/sno/render/files"

	"github.com/solonode/sno/install/bootstrap"
	"github.com/solonode/sno/install/controlplane"
	"github.com/solonode/sno/install/ignition/ignitiontest"
	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

// A real release renders its bootstrap phase from the config that create makes, up to the static pods. `make payload`
// runs it with podman, which pulls some gigabytes.
func TestRelease(t *testing.T) {
	image, secret := os.Getenv("RELEASE"), os.Getenv("PULL_SECRET")
	if image == "" || secret == "" {
		t.Skip("make payload RELEASE=... PULL_SECRET=... runs it")
	}
	pulls, err := os.ReadFile(secret)
	fixture.NoError(t, err)
	dir := t.TempDir()
	config := "apiVersion: v1\nmetadata: {name: sno}\nbaseDomain: example.com\ncontrolPlane: {replicas: 1}\ncompute: [{replicas: 0}]\nplatform: {none: {}}\n" +
		"networking: {machineNetwork: [{cidr: 198.51.100.0/24}]}\nbootstrapInPlace: {installationDisk: /dev/vda}\npullSecret: " + strconv.Quote(strings.TrimSpace(string(pulls))) + "\n"
	fixture.NoError(t, files.Write(dir, []files.File{{Path: "install-config.yaml", Mode: 0o600, Content: []byte(config)}}))
	if code, _, errs := run(t.Context(), in(dir, []string{"create", "single-node-ignition-config", "--program-in-image", "--release-image", image})...); code != 0 {
		t.Fatal(errs)
	}
	live, err := os.ReadFile(filepath.Join(dir, liveConfig))
	fixture.NoError(t, err)
	root := t.TempDir()
	entries, _ := ignitiontest.Read(t, live)
	var list []files.File
	for path, e := range entries {
		if !e.Mode.IsDir() {
			list = append(list, files.File{Path: strings.TrimPrefix(path, "/"), Mode: e.Mode.Perm(), Content: []byte(e.Content)})
		}
	}
	fixture.NoError(t, files.Write(root, list))
	phases := bootstrap.Phases(bootstrap.Options{
		Root: root, Podman: cmp.Or(os.Getenv("PODMAN"), "podman"), Output: t.Output(), Interval: time.Second,
		Host: func() (controlplane.Host, error) {
			return controlplane.Host{Name: "master0", Interfaces: []controlplane.Interface{{Name: "eno1", Addresses: []netip.Prefix{netip.MustParsePrefix("198.51.100.10/24")}}}}, nil
		},
	})
	phases = slices.DeleteFunc(phases, func(p phase.Phase) bool {
		return !slices.Contains([]string{"release-payload", "render", "static-pods"}, p.Name)
	})
	fixture.NoError(t, phase.Run(t.Context(), phases, phase.Options{}))
	for _, name := range node.StaticPods {
		text, err := os.ReadFile(filepath.Join(root, node.ManifestDir, name))
		if err != nil || len(text) == 0 {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s has %d bytes", name, len(text))
	}
}
