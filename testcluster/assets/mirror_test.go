// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// mirror is a local server with the layouts of the release servers.
type mirror struct {
	*httptest.Server
	// change, if not nil, answers a request and returns true, or returns false.
	change func(w http.ResponseWriter, r *http.Request) bool

	mu       sync.Mutex
	requests map[string]int
}

// newMirror serves the programs of a folder until the test ends, and names the mirror in the environment. Those that
// the folder lacks are not published.
func newMirror(t *testing.T, folder string, v versions) *mirror {
	t.Helper()
	kwok, err := os.ReadFile(filepath.Join(folder, "kwok"))
	if err != nil {
		t.Fatal(err)
	}
	platform := strings.Join([]string{v.kwok, runtime.GOOS, runtime.GOARCH}, "/")
	known := kwokSums[platform]
	kwokSums[platform] = sumOf(kwok)
	t.Cleanup(func() { kwokSums[platform] = known })

	archive := pack(t, filepath.Join(folder, "etcd"))
	m := &mirror{requests: map[string]int{}}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		m.requests[r.URL.Path]++
		m.mu.Unlock()
		if m.change != nil && m.change(w, r) {
			return
		}
		name := path.Base(r.URL.Path)
		switch {
		case name == "SHA256SUMS":
			_, _ = fmt.Fprintf(w, "%064d  etcd-another.zip\n%s  etcd-%s-%s-%s.tar.gz\n", 1, sumOf(archive), v.etcd, runtime.GOOS, runtime.GOARCH)
		case strings.HasSuffix(name, ".tar.gz"):
			_, _ = w.Write(archive)
		case strings.HasSuffix(name, ".sha256"):
			content, err := os.ReadFile(filepath.Join(folder, strings.TrimSuffix(name, ".sha256")))
			if err != nil {
				http.NotFound(w, r)
				return
			}
			_, _ = fmt.Fprint(w, sumOf(content)) // as on the server, without a line's end
		default:
			http.ServeFile(w, r, filepath.Join(folder, strings.TrimSuffix(name, "-"+runtime.GOOS+"-"+runtime.GOARCH)))
		}
	}))
	t.Cleanup(m.Close)
	for _, env := range []string{KubernetesReleasesEnv, EtcdReleasesEnv, KwokReleasesEnv} {
		t.Setenv(env, m.URL+"/"+strings.ToLower(env)+"/")
	}
	return m
}

// take returns the numbers of requests since the last call.
func (m *mirror) take() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	requests := m.requests
	m.requests = map[string]int{}
	return requests
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// pack returns a .tar.gz with a file, as etcd is released; without the file it has another one.
func pack(t *testing.T, file string) []byte {
	t.Helper()
	name := "etcd-x/" + filepath.Base(file)
	content, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		name, err = "etcd-x/README.md", nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.NoCompression)
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewWriter(zipped)
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
