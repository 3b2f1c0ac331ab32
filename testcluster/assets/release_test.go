// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var controlPlane = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}

// fullRecipe is that of source with all programs of a control plane.
func fullRecipe(t *testing.T) recipe {
	t.Helper()
	dir := source(t, func(files map[string]string) {
		tools := "\tk8s.io/kubernetes/cmd/kube-apiserver\n"
		for _, name := range []string{"kube-controller-manager", "kube-scheduler"} {
			files["kubernetes/cmd/"+name+"/main.go"] = files["kubernetes/cmd/kube-apiserver/main.go"]
			tools += "\tk8s.io/kubernetes/cmd/" + name + "\n"
		}
		files["go.mod"] = strings.Replace(files["go.mod"], "\tk8s.io/kubernetes/cmd/kube-apiserver\n", tools, 1)
	})
	r, err := readRecipe(t.Context(), dir, ofControlPlane)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func published(name string) string { return "the published " + name }

// fakeMirror serves programs that cannot run, for an empty cache in the mode.
func fakeMirror(t *testing.T, m mode) *mirror {
	t.Helper()
	emptyCache(t)
	t.Setenv(ModeEnv, string(m))
	return newMirror(t, folder(t, published, controlPlane...), versions{"v1.2.3", "v3.9.9", "v0.9.9"})
}

func folder(t *testing.T, content func(name string) string, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content(name)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// quick makes a server count as silent soon, for one test.
func quick(t *testing.T) {
	t.Helper()
	before := silence
	silence = 50 * time.Millisecond
	t.Cleanup(func() { silence = before })
}

// TestDownload has one fault per case. What a fault prevents is an error in mode download, and built from source
// otherwise; everything else is downloaded and unchanged.
func TestDownload(t *testing.T) {
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	text := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
	}
	for _, test := range []struct {
		name string
		// path is the end of the path that has another answer.
		path   string
		answer http.HandlerFunc
		built  []string
		err    string
		quick  bool
	}{
		{name: "no fault", path: "nothing"},
		{name: "wrong checksum", path: "/kube-scheduler", answer: text("another"), built: []string{"kube-scheduler"}, err: "kube-scheduler: wrong checksum: its SHA-256 is "},
		{
			name: "truncated", path: "/kube-scheduler", built: []string{"kube-scheduler"}, err: "unexpected EOF",
			answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "1000")
				_, _ = w.Write([]byte("some"))
			},
		},
		{
			name: "truncated without a length", path: "/kube-scheduler", built: []string{"kube-scheduler"}, err: "unexpected EOF",
			answer: func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte("some"))
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			},
		},
		{name: "no answer", path: "/kube-scheduler.sha256", answer: silent, built: []string{"kube-scheduler"}, err: "nothing received for 50ms", quick: true},
		{
			name: "stalled", path: "/kube-scheduler", built: []string{"kube-scheduler"}, err: "nothing received for 50ms", quick: true,
			answer: func(w http.ResponseWriter, r *http.Request) {
				_, _ = w.Write([]byte("some"))
				_ = http.NewResponseController(w).Flush()
				silent(w, r)
			},
		},
		{name: "not found", path: "/kube-scheduler", answer: http.NotFound, built: []string{"kube-scheduler"}, err: "404 Not Found (kube-scheduler)"},
		{name: "nothing found", answer: http.NotFound, built: controlPlane, err: "404 Not Found (SHA256SUMS)"},
		{
			name: "redirect loop", path: "/kube-scheduler", built: []string{"kube-scheduler"}, err: "more than 5 redirects",
			answer: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) },
		},
		{
			name: "HTML instead of a checksum", path: "/kube-scheduler.sha256", answer: text("<!DOCTYPE html>"), built: []string{"kube-scheduler"},
			err: `no SHA-256 in kube-scheduler.sha256, which begins with "<!DOCTYPE html>"`,
		},
		{name: "no archive", path: ".tar.gz", answer: text("no archive"), built: []string{"etcd"}, err: ".tar.gz: wrong checksum"},
		{name: "archive of another version", path: "/SHA256SUMS", answer: text("1234  etcd.tar.gz"), built: []string{"etcd"}, err: "no SHA-256 in SHA256SUMS"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := fakeMirror(t, modeDownload)
			m.change = func(w http.ResponseWriter, r *http.Request) bool {
				hit := strings.HasSuffix(r.URL.Path, test.path)
				if hit {
					test.answer(w, r)
				}
				return hit
			}
			r := fullRecipe(t)
			all := controlPlane
			if test.quick { // requests for other programs could also take too long on a busy machine
				quick(t)
				all = test.built
				r.programs = []string{"k8s.io/kubernetes/cmd/kube-scheduler"}
			}
			cache, err := CacheDir()
			if err != nil {
				t.Fatal(err)
			}
			if test.err != "" {
				_, err := r.ensure(t.Context(), nil)
				if !errors.Is(err, ErrNotDownloaded) || !strings.Contains(err.Error(), strings.Join(test.built, ", ")+" (") || !strings.Contains(err.Error(), test.err) {
					t.Errorf("mode download: error %v, want %q about %v", err, test.err, test.built)
				}
				if left := list(t, cache); !slices.Equal(left, []string{r.key + ".lock"}) {
					t.Errorf("mode download leaves %v", left)
				}
				t.Setenv(ModeEnv, "")
			}
			var progress bytes.Buffer
			a, err := r.ensure(t.Context(), &progress)
			if err != nil {
				t.Fatal(err)
			}
			if built := "from source (" + strings.Join(test.built, ", ") + ")"; test.err != "" &&
				(!strings.Contains(progress.String(), test.err) || !strings.Contains(progress.String(), built)) {
				t.Errorf("progress lacks %q or %q:\n%s", test.err, built, progress.String())
			}
			checkFolder(t, a, all, test.built)
			if left := list(t, cache); len(left) != 2 {
				t.Errorf("the cache holds %v, want a folder and its lock", left)
			}
		})
	}
}

// checkFolder checks the content of a folder, of which some programs are built and the others downloaded.
func checkFolder(t *testing.T, a Assets, all, built []string) {
	t.Helper()
	want := append(slices.Clone(all), originFile, stagesDir)
	if len(built) == len(all) {
		want = append(slices.Clone(all), stagesDir)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, list(t, a.Dir)); diff != "" {
		t.Errorf("folder (-want +got):\n%s", diff)
	}
	for _, name := range all {
		content, err := os.ReadFile(a.Program(name))
		if err != nil {
			t.Fatal(err)
		}
		isBuilt := slices.Contains(built, name)
		if same := string(content) == published(name); same == isBuilt {
			t.Errorf("%s is the published one: %v", name, same)
		}
		if info, err := os.Stat(a.Program(name)); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("mode of %s: %v, %v", name, info.Mode(), err)
		}
		if hashed := strings.Contains(a.Origin, name+" sha256 "); hashed == isBuilt {
			t.Errorf("the origin of %s is not right in %q", name, a.Origin)
		}
	}
	downloaded := strings.Contains(a.Origin, "downloaded from 127.0.0.1:")
	if strings.Contains(a.Origin, Built) != (len(built) > 0) || downloaded != (len(built) < len(all)) {
		t.Errorf("origin %q", a.Origin)
	}
}

func TestEnsureDownloadsOnce(t *testing.T) {
	m := fakeMirror(t, "")
	redirected := false
	m.change = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/kube-scheduler") && r.URL.RawQuery == "" {
			redirected = true
			http.Redirect(w, r, r.URL.Path+"x?signed", http.StatusFound)
			return true
		}
		r.URL.Path = strings.TrimSuffix(r.URL.Path, "x")
		return false
	}
	r := fullRecipe(t)
	results := make([]Assets, 3)
	var group sync.WaitGroup
	for i := range results {
		group.Go(func() {
			var err error
			if results[i], err = r.ensure(t.Context(), nil); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	first := results[0]
	if results[1] != first || results[2] != first || !redirected {
		t.Errorf("%+v, redirected %v", results, redirected)
	}
	requests := m.take()
	for address, n := range requests {
		if n != 1 {
			t.Errorf("%d requests for %s", n, address)
		}
	}
	if len(requests) != 10 { // four checksums, five programs and a redirect
		t.Errorf("requests %v", requests)
	}
	if again, err := r.ensure(t.Context(), nil); err != nil || again != first || len(m.take()) != 0 {
		t.Errorf("again: %+v, %v, want no requests", again, err)
	}
	t.Setenv(ModeEnv, "build")
	built, err := r.ensure(t.Context(), nil)
	if err != nil || built.Origin != Built || built.Dir == first.Dir || len(m.take()) != 0 {
		t.Errorf("mode build: %+v, %v, want a folder without downloads", built, err)
	}
	t.Setenv(ModeEnv, "download")
	if again, err := r.ensure(t.Context(), nil); err != nil || again != built {
		t.Errorf("what was built is not used: %+v, %v", again, err)
	}
	t.Setenv(ModeEnv, "always")
	if _, err := r.ensure(t.Context(), nil); !errors.Is(err, ErrSetting) {
		t.Errorf("unknown mode: %v", err)
	}
}

// TestServersAreAskedAtOnce has a server that does not answer before it has the first requests for all programs.
func TestServersAreAskedAtOnce(t *testing.T) {
	m := fakeMirror(t, modeDownload)
	var arrived sync.WaitGroup
	arrived.Add(len(controlPlane))
	m.change = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, ".sha256") || strings.HasSuffix(r.URL.Path, "SUMS") || strings.Contains(r.URL.Path, "/kwok-") {
			arrived.Done()
			arrived.Wait()
		}
		return false
	}
	if _, err := fullRecipe(t).ensure(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestDownloadEndsWithItsContext(t *testing.T) {
	m := fakeMirror(t, modeAuto)
	ctx, cancel := context.WithCancel(t.Context())
	m.change = func(_ http.ResponseWriter, r *http.Request) bool {
		cancel()
		<-r.Context().Done()
		return true
	}
	var progress bytes.Buffer
	if _, err := fullRecipe(t).ensure(ctx, &progress); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	cache, err := CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(progress.String(), "Building") || len(list(t, cache)) != 1 {
		t.Errorf("cache %v after:\n%s", list(t, cache), progress.String())
	}
}

// TestAddresses has the addresses of the public servers, and fails after a change of kwok's version until kwokSums has
// the new one.
func TestAddresses(t *testing.T) {
	emptyCache(t)
	v := versions{"v1.35.2", "v3.6.8", "v0.8.0"}
	for program, want := range map[string]release{
		"kube-scheduler": {
			address: "https://dl.k8s.io/release/v1.35.2/bin/linux/amd64/kube-scheduler",
			sums:    "https://dl.k8s.io/release/v1.35.2/bin/linux/amd64/kube-scheduler.sha256",
		},
		"etcd": {
			address: "https://github.com/etcd-io/etcd/releases/download/v3.6.8/etcd-v3.6.8-linux-amd64.tar.gz",
			sums:    "https://github.com/etcd-io/etcd/releases/download/v3.6.8/SHA256SUMS",
		},
		"kwok": {address: "https://github.com/kubernetes-sigs/kwok/releases/download/v0.8.0/kwok-linux-amd64", sum: kwokSums["v0.8.0/linux/amd64"]},
	} {
		if got := releaseOf(program, v, "linux", "amd64"); got != want {
			t.Errorf("%s: %+v, want %+v", program, got, want)
		}
	}
	if got := releaseOf("kwok", versions{kwok: "v0.0.1"}, "linux", "amd64"); got.address != "" {
		t.Errorf("kwok without a checksum is downloaded from %s", got.address)
	}
	r, err := kubeRecipe(t.Context(), ofControlPlane)
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		if releaseOf("kwok", r.versions, "linux", arch).address == "" {
			t.Errorf("kwok %s has no SHA-256 for %s", r.versions.kwok, arch)
		}
	}
}

func TestRedirectKeepsTLS(t *testing.T) {
	request := func(scheme string) *http.Request { return &http.Request{URL: &url.URL{Scheme: scheme}} }
	for _, test := range []struct {
		from, to string
		want     bool
	}{{"https", "https", true}, {"https", "http", false}, {"http", "http", true}, {"http", "https", true}} {
		if err := client.CheckRedirect(request(test.to), []*http.Request{request(test.from)}); (err == nil) != test.want {
			t.Errorf("%s to %s: %v", test.from, test.to, err)
		}
	}
}

// TestErrorsHaveNoAddress has addresses with a user, which may be a token.
func TestErrorsHaveNoAddress(t *testing.T) {
	m := fakeMirror(t, modeDownload)
	m.change = func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }
	for address, want := range map[string]string{
		strings.Replace(m.URL, "http://", "http://secret@", 1): "EOF", "ftp://secret@example.com": "unsupported protocol scheme", "https://user:secret%": "the address of kube-apiserver is not valid",
	} {
		t.Setenv(KubernetesReleasesEnv, address)
		if _, err := fullRecipe(t).ensure(t.Context(), nil); err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", address, err, want)
		}
	}
}

func TestGivenFolder(t *testing.T) {
	cache := emptyCache(t)
	r := fullRecipe(t)
	script := func(string) string { return "#!/bin/sh\necho Kubernetes v1.1.1\n" }
	all := append(slices.Clone(controlPlane), "stages/a.yaml")
	const record = "downloaded from example.com: etcd sha256 12; built from source: kwok"
	downloaded, built, old := filepath.Join(cache, r.key+releasedSuffix), filepath.Join(cache, r.key), filepath.Join(cache, "v1.1.1-0123456789abcdef")
	for _, dir := range []string{downloaded, built, old} {
		if err := os.CopyFS(dir, os.DirFS(folder(t, script, all...))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(downloaded, originFile), []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		dir, line string
		want      Assets
	}{
		"none":    {},
		"missing": {dir: filepath.Join(cache, "missing"), line: "is not used: there is no"},
		"envtest's": {
			dir: folder(t, script, "etcd", "kube-apiserver", "kubectl"), line: "has no kube-controller-manager, kube-scheduler, kwok, stages",
		},
		"another set": {dir: folder(t, script, "kubelet")},
		"of the user": {
			dir: folder(t, script, all...), line: "has Kubernetes v1.1.1, testcluster/kube has v1.2.3", want: Assets{Version: "v1.1.1", Origin: Given},
		},
		"of another version in the cache": {dir: old, line: "has Kubernetes v1.1.1", want: Assets{Version: "v1.1.1", Origin: Given}},
		"built":                           {dir: built, want: Assets{Version: "v1.2.3", Origin: Built}},
		"downloaded":                      {dir: downloaded, want: Assets{Version: "v1.2.3", Origin: record}},
	} {
		var progress bytes.Buffer
		got, ok, err := r.given(t.Context(), test.dir, cache, &progress)
		if test.want.Origin != "" {
			test.want.Dir = test.dir
		}
		if err != nil || ok != (test.want.Origin != "") || got != test.want {
			t.Errorf("%s: %+v, %v, %v, want %+v", name, got, ok, err, test.want)
		}
		if !strings.Contains(progress.String(), test.line) || (test.line == "") != (progress.Len() == 0) {
			t.Errorf("%s: progress %q, want %q", name, progress.String(), test.line)
		}
	}
}
