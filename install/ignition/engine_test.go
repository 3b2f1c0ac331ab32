// SPDX-License-Identifier: Apache-2.0

package ignition

import (
	"crypto/sha512"
	"encoding/hex"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/install/ignition/ignitiontest"
	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/render/files"
)

const home = "/home/core"

const preset = "/etc/systemd/system-preset/20-ignition.preset"

// binary returns incompressible bytes, the same each time.
func binary(number uint64, size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(number)}).Read(b)
	return b
}

func applied(t *testing.T, config []byte) map[string]ignitiontest.Entry {
	t.Helper()
	root := ignitiontest.NewRoot(t)
	fixture.NoError(t, ignitiontest.Apply(t, root, config))
	return ignitiontest.Tree(t, root)
}

// The engine writes exactly what was added, and only the owner reads keys (R-BIP-11, U-INS-8).
func TestEngineWritesBuilder(t *testing.T) {
	program, large := binary(1, 5000), strings.Repeat("apiVersion: v1\n", 500)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(program) }))
	t.Cleanup(server.Close)
	sum := sha512.Sum512(program)
	on := service + "[Install]\nWantedBy=multi-user.target\n"

	var b Builder
	b.AddDir("test", "etc/keys", 0o700)
	b.AddDir("test", "etc/keys/etcd", 0o700)
	b.AddFile("test", files.File{Path: "etc/keys/etcd/peer.key", Mode: 0o600, Content: binary(2, 300)})
	b.AddFile("test", files.File{Path: "etc/motd", Mode: 0o644, Content: []byte("100 % näher & <b>\n")})
	b.AddFile("test", files.File{Path: "etc/empty file", Mode: 0o640})
	b.AddFile("test", files.File{Path: "etc/kubernetes/manifests/etcd-pod.yaml", Mode: 0o600, Content: []byte(large)})
	b.AddFile("test", files.File{Path: "usr/local/bin/script", Mode: 0o755, Content: []byte("#!/bin/sh\n")})
	b.AddDownload("test", "usr/local/bin/program", 0o755, server.URL, hex.EncodeToString(sum[:]))
	b.AddUnit("test", "on.service", on)
	b.AddUnit("test", "off.service", service)
	b.AddDropIn("test", "kubelet.service", "10-a.conf", "[Unit]\nAfter=on.service\n")
	b.AddSSHKeys("test", "core", []string{"ssh-ed25519 AAAA a", "ssh-ed25519 AAAA b"})
	config := fixture.Must(b.Encode())
	ignitiontest.Validate(t, config)
	root := ignitiontest.NewRoot(t)
	if err := os.WriteFile(filepath.Join(root, "etc/motd"), []byte("of the image"), 0o666); err != nil { //nolint:gosec // the config must replace it
		t.Fatal(err)
	}
	fixture.NoError(t, ignitiontest.Apply(t, root, config))
	file := func(mode fs.FileMode, content string) ignitiontest.Entry {
		return ignitiontest.Entry{Mode: mode, Content: content}
	}
	core := func(mode fs.FileMode, content string) ignitiontest.Entry {
		return ignitiontest.Entry{Mode: mode, Content: content, Owner: 1000, Group: 1000}
	}
	want := map[string]ignitiontest.Entry{
		"/etc/keys":               file(fs.ModeDir|0o700, ""),
		"/etc/keys/etcd":          file(fs.ModeDir|0o700, ""),
		"/etc/keys/etcd/peer.key": file(0o600, string(binary(2, 300))),
		"/etc/motd":               file(0o644, "100 % näher & <b>\n"),
		"/etc/empty file":         file(0o640, ""),
		"/etc/kubernetes/manifests/etcd-pod.yaml":         file(0o600, large),
		"/usr/local/bin/script":                           file(0o755, "#!/bin/sh\n"),
		"/usr/local/bin/program":                          file(0o755, string(program)),
		"/etc/systemd/system/on.service":                  file(0o644, on),
		"/etc/systemd/system/off.service":                 file(0o644, service),
		"/etc/systemd/system/kubelet.service.d/10-a.conf": file(0o644, "[Unit]\nAfter=on.service\n"),
		preset:                           file(0o644, "enable on.service\n"),
		home:                             core(fs.ModeDir|0o755, ""),
		home + "/.ssh":                   core(fs.ModeDir|0o700, ""),
		home + "/.ssh/authorized_keys.d": core(fs.ModeDir|0o700, ""),
		home + "/.ssh/authorized_keys.d/ignition": core(0o600, "ssh-ed25519 AAAA a\nssh-ed25519 AAAA b\n"),
	}
	fixture.Equal(t, "files", want, ignitiontest.Tree(t, root))
}

func TestEngineRefusesAnotherSum(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("another")) }))
	t.Cleanup(server.Close)
	sum := sha512.Sum512([]byte("program"))
	var b Builder
	b.AddDownload("test", "usr/local/bin/program", 0o755, server.URL, hex.EncodeToString(sum[:]))
	config := fixture.Must(b.Encode())
	root := ignitiontest.NewRoot(t)
	if err := ignitiontest.Apply(t, root, config); err == nil || !strings.Contains(err.Error(), "hash verification failed") {
		t.Errorf("error %v", err)
	}
	if _, ok := ignitiontest.Tree(t, root)["/usr/local/bin/program"]; ok {
		t.Error("the program is there")
	}
}

// The engine writes the files of the original and the additions, and nothing else (R-BIP-11, U-INS-9).
func TestEngineWritesEnriched(t *testing.T) {
	// Disks and proxy are handled by other stages of the engine.
	original := []byte(`{
  "ignition": {"version": "3.2.0"},
  "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["ssh-ed25519 AAAA admin"]}]},
  "storage": {
    "directories": [{"path": "/etc/kubernetes/conf", "mode": 448}],
    "links": [{"path": "/etc/localtime", "target": "../usr/share/zoneinfo/UTC"}],
    "files": [
      {"path": "/etc/kubernetes/kubelet.conf", "mode": 384, "contents": {"source": "data:,kind%3A%20KubeletConfiguration"}},
      {"path": "/etc/hostname", "overwrite": true, "mode": 420, "contents": {"source": "data:,master0"}}
    ]
  },
  "systemd": {"units": [
    {"name": "kubelet.service", "enabled": true, "contents": "[Service]\nExecStart=/usr/bin/kubelet\n[Install]\nWantedBy=multi-user.target\n", "dropins": [{"name": "10-mco.conf", "contents": "[Unit]\n"}]},
    {"name": "zincati.service", "mask": true}
  ]}
}`)
	b := additions()
	b.AddUnit("sno-install", "etcd-restore.service", service+"[Install]\nWantedBy=multi-user.target\n")
	alone := fixture.Must(b.Encode())
	enriched := fixture.Must(Enrich("master.ign", original, b))
	ignitiontest.Validate(t, enriched)
	want, added, got := applied(t, original), applied(t, alone), applied(t, enriched)
	if len(want) < 10 || len(added) < 5 {
		t.Fatalf("the original has %d entries, the additions %d", len(want), len(added))
	}
	// Both write to the preset file, the list of enabled units.
	lines := slices.Sorted(strings.Lines(want[preset].Content + added[preset].Content))
	if diff := cmp.Diff(lines, slices.Sorted(strings.Lines(got[preset].Content))); diff != "" || len(lines) != 2 {
		t.Errorf("enabled units (-want +got):\n%s", diff)
	}
	delete(added, preset)
	for path := range added {
		if _, both := want[path]; both {
			t.Errorf("both write %s", path)
		}
	}
	maps.Copy(want, added)
	want[preset] = got[preset]
	fixture.Equal(t, "files", want, got)
}
