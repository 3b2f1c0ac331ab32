// SPDX-License-Identifier: Apache-2.0

package ignition

import (
	"crypto/sha512"
	"encoding/hex"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/solonode/sno/render/files"

	"github.com/solonode/sno/install/ignition/ignitiontest"
	"github.com/solonode/sno/install/internal/fixture"
)

const home = "/home/core"

const preset = "/etc/systemd/system-preset/20-ignition.preset"

// binary returns incompressible bytes, the same each time.
func binary(number uint64, size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(number)}).Read(b)
	return b
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
	fixture.Fails(t, "", ignitiontest.Apply(t, root, config), "hash verification failed")
	if _, ok := ignitiontest.Tree(t, root)["/usr/local/bin/program"]; ok {
		t.Error("the program is there")
	}
}
