// SPDX-License-Identifier: Apache-2.0

package assets_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/testcluster/embedded"
)

// TestClusterOfDownloadedPrograms downloads real programs from a local server into an empty cache, and starts a cluster
// with them.
func TestClusterOfDownloadedPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("copies a gigabyte and starts a cluster")
	}
	there, err := assets.Ensure(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	mirror := assets.NewRealMirror(t, there.Dir)
	t.Setenv(assets.GivenEnv, "")
	t.Setenv(assets.CacheEnv, t.TempDir())
	t.Setenv(assets.ModeEnv, "download")
	var progress bytes.Buffer
	c, err := embedded.Start(t.Context(), embedded.Config{CRDs: []string{}, Progress: &progress})
	if err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	defer func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	}()
	version, err := c.Clientset().Discovery().ServerVersion()
	if err != nil || version.GitVersion != there.Version {
		t.Errorf("version %v, %v, want %s", version, err, there.Version)
	}
	host := strings.TrimPrefix(mirror.URL, "http://")
	if want := "downloaded from " + host + ": etcd sha256 "; !strings.HasPrefix(c.Origin(), want) || strings.Contains(c.Origin(), assets.Built) {
		t.Errorf("origin %q, want %q", c.Origin(), want)
	}
	summary := "Kubernetes " + there.Version + ", downloaded from " + host + ": etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok\n"
	if !strings.Contains(progress.String(), summary) || strings.Contains(progress.String(), "Building") {
		t.Errorf("progress:\n%s", progress.String())
	}
}
