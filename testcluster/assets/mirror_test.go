// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// Mirror is a local server with the layouts of the release servers.
type Mirror struct {
	*httptest.Server
	// KwokSum is the SHA-256 of its kwok.
	KwokSum string

	folder string
	// change, if not nil, answers a request and returns true, or returns false.
	change func(w http.ResponseWriter, r *http.Request) bool

	mu       sync.Mutex
	requests map[string]int
}

// NewMirror serves the programs of a folder. Those that it lacks are not published.
func NewMirror(t *testing.T, programs, kubernetes, etcd, kwok string) *Mirror {
	t.Helper()
	m := &Mirror{folder: t.TempDir(), requests: map[string]int{}}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		m.requests[r.URL.Path]++
		m.mu.Unlock()
		if m.change == nil || !m.change(w, r) {
			http.ServeFile(w, r, filepath.Join(m.folder, filepath.FromSlash(r.URL.Path)))
		}
	}))
	t.Cleanup(m.Close)
	platform := runtime.GOOS + "-" + runtime.GOARCH
	release := "k8s/release/" + kubernetes + "/bin/" + runtime.GOOS + "/" + runtime.GOARCH + "/"
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubeadm", "kubectl", "kubelet"} {
		if sum := m.copy(t, filepath.Join(programs, name), release+name); sum != "" {
			m.write(t, release+name+".sha256", []byte(sum)) // as on the server, without a line's end
		}
	}
	m.KwokSum = m.copy(t, filepath.Join(programs, "kwok"), "kwok/"+kwok+"/kwok-"+platform)

	archive := "etcd-" + etcd + "-" + platform + ".tar.gz"
	folder := strings.TrimSuffix(archive, ".tar.gz") + "/"
	sum, _ := m.pack(t, "etcd/"+etcd+"/"+archive, map[string]string{folder + "etcd": filepath.Join(programs, "etcd")})
	m.write(t, "etcd/"+etcd+"/SHA256SUMS", fmt.Appendf(nil, "%064d  etcd-%s-darwin-arm64.zip\n%s  %s\n", 1, etcd, sum, archive))

	archive = "envtest-" + kubernetes + "-" + platform + ".tar.gz"
	members := map[string]string{}
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		members["controller-tools/envtest/"+name] = filepath.Join(programs, name)
	}
	_, sum = m.pack(t, "envtest/"+archive, members)
	m.write(t, "index.yaml", fmt.Appendf(nil, "releases:\n  v1.0.0:\n    envtest-v1.0.0-%s.tar.gz:\n      hash: abc\n      selfLink: %s/old\n"+
		"  %s:\n    %s:\n      hash: %s\n      selfLink: %s/envtest/%s\n", platform, m.URL, kubernetes, archive, sum, m.URL, archive))
	return m
}

// NewRealMirror serves the programs of a folder in the versions of testcluster/kube.
func NewRealMirror(t *testing.T, programs string) *Mirror {
	t.Helper()
	dir, err := ModuleDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := readRecipe(t.Context(), filepath.Join(dir, "kube"), ofControlPlane)
	if err != nil {
		t.Fatal(err)
	}
	return NewMirror(t, programs, r.versions.kubernetes, r.versions.etcd, r.versions.kwok)
}

// Environment returns the settings that name the mirror.
func (m *Mirror) Environment() map[string]string {
	return map[string]string{
		EnvtestIndexEnv: m.URL + "/index.yaml", KubernetesReleasesEnv: m.URL + "/k8s/", EtcdReleasesEnv: m.URL + "/etcd", KwokReleasesEnv: m.URL + "/kwok",
		KwokSumEnv: m.KwokSum,
	}
}

// take returns the numbers of requests since the last call.
func (m *Mirror) take() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	requests := m.requests
	m.requests = map[string]int{}
	return requests
}

func (m *Mirror) create(t *testing.T, path string) *os.File {
	t.Helper()
	path = filepath.Join(m.folder, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func (m *Mirror) write(t *testing.T, path string, content []byte) {
	t.Helper()
	file := m.create(t, path)
	if _, err := io.Copy(file, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// copy returns the SHA-256, or nothing for a file that does not exist.
func (m *Mirror) copy(t *testing.T, from, path string) string {
	t.Helper()
	in, err := os.Open(from)
	if os.IsNotExist(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	file, sum := m.create(t, path), sha256.New()
	if _, err := io.Copy(io.MultiWriter(file, sum), in); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// pack writes a .tar.gz of the files that exist.
func (m *Mirror) pack(t *testing.T, path string, members map[string]string) (sum256, sum512 string) {
	t.Helper()
	file, short, long := m.create(t, path), sha256.New(), sha512.New()
	zipped, err := gzip.NewWriterLevel(io.MultiWriter(file, short, long), gzip.NoCompression)
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewWriter(zipped)
	for name, from := range members {
		info, err := os.Stat(from)
		if os.IsNotExist(err) {
			continue
		}
		in, openErr := os.Open(from)
		if err != nil || openErr != nil {
			t.Fatal(err, openErr)
		}
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: info.Size()}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(archive, in); err != nil {
			t.Fatal(err)
		}
		_ = in.Close()
	}
	for _, closer := range []io.Closer{archive, zipped, file} {
		if err := closer.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return hex.EncodeToString(short.Sum(nil)), hex.EncodeToString(long.Sum(nil))
}
