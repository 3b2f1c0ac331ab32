// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

var controlPlane = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}

// fullSource is source with all programs of a control plane.
func fullSource(t *testing.T) string {
	t.Helper()
	return source(t, func(files map[string]string) {
		tools := "\tk8s.io/kubernetes/cmd/kube-apiserver\n"
		for _, name := range []string{"kube-controller-manager", "kube-scheduler"} {
			files["kubernetes/cmd/"+name+"/main.go"] = files["kubernetes/cmd/kube-apiserver/main.go"]
			tools += "\tk8s.io/kubernetes/cmd/" + name + "\n"
		}
		files["go.mod"] = strings.Replace(files["go.mod"], "\tk8s.io/kubernetes/cmd/kube-apiserver\n", tools, 1)
	})
}

// program returns what has the first bytes of a program for Linux, and ends with a text.
func program(machine elf.Machine, text string) []byte {
	head := make([]byte, 64)
	copy(head, elf.ELFMAG+"\x02\x01\x01")
	binary.LittleEndian.PutUint16(head[18:], uint16(machine))
	return append(head, text...)
}

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

func published(name string) []byte { return program(machines[runtime.GOARCH], "the published "+name) }

// fakeMirror serves programs that cannot run.
func fakeMirror(t *testing.T, change ...func(programs map[string][]byte)) *Mirror {
	t.Helper()
	if runtime.GOOS != "linux" || machines[runtime.GOARCH] == 0 {
		t.Skip("NOT TESTED: the programs of these tests are for Linux on amd64 or arm64")
	}
	programs := map[string][]byte{}
	for _, name := range append([]string{"kubectl"}, controlPlane...) {
		programs[name] = published(name)
	}
	for _, f := range change {
		f(programs)
	}
	folder := t.TempDir()
	for name, content := range programs {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return NewMirror(t, folder, "v1.2.3", "v3.9.9", "v0.9.9")
}

func mirrored(t *testing.T, m *Mirror, wanted mode) settings {
	t.Helper()
	environment := m.Environment()
	environment[ModeEnv] = string(wanted)
	s, err := readSettings(func(name string) string { return environment[name] })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// answering replaces the answer for the paths with a suffix.
func answering(suffix string, answer http.HandlerFunc) func(*Mirror, *settings) {
	return func(m *Mirror, _ *settings) {
		m.change = func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, suffix) {
				answer(w, r)
				return true
			}
			return false
		}
	}
}

func silent(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func html(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte("<!DOCTYPE html><html><body>Please log in</body></html>"))
}

// TestDownload has one fault per case. What a fault prevents is built from source; everything else is downloaded and
// unchanged.
func TestDownload(t *testing.T) {
	const envtestArchive = "/envtest-v1.2.3-" + runtime.GOOS + "-" + runtime.GOARCH + ".tar.gz"
	for _, test := range []struct {
		name  string
		serve func(programs map[string][]byte)
		fault func(*Mirror, *settings)
		// alone means that no other program is wanted, whose requests could also take too long on a busy machine.
		alone bool
		built []string
		// lines are in the progress, and error in the error of mode download.
		lines []string
		err   string
	}{
		{name: "no fault", lines: []string{"kube-scheduler: downloaded from 127.0.0.1:"}},
		{
			name: "wrong checksum",
			fault: answering("/kube-scheduler", func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write(program(machines[runtime.GOARCH], "another"))
			}),
			built: []string{"kube-scheduler"}, err: "wrong checksum of kube-scheduler: its SHA-256 is ",
		},
		{
			name: "truncated program",
			fault: answering("/kube-scheduler", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "1000")
				_, _ = w.Write(published("kube-scheduler"))
			}),
			built: []string{"kube-scheduler"}, err: "truncated: kube-scheduler ends after 92 of 1000 bytes",
		},
		{
			name: "program without an end and length",
			fault: answering("/kube-scheduler", func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write(published("kube-scheduler"))
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}),
			built: []string{"kube-scheduler"}, err: "truncated: kube-scheduler ends after 92 bytes",
		},
		{
			name: "no first byte of a checksum",
			fault: func(m *Mirror, s *settings) {
				answering("/kube-scheduler.sha256", silent)(m, s)
				s.firstByte = 50 * time.Millisecond
			},
			alone: true, built: []string{"kube-scheduler"}, err: "no answer within 50ms",
		},
		{
			name: "no first byte after the header of a program",
			fault: func(m *Mirror, s *settings) {
				answering("/kube-scheduler", func(w http.ResponseWriter, r *http.Request) {
					_ = http.NewResponseController(w).Flush()
					silent(w, r)
				})(m, s)
				s.firstByte = 50 * time.Millisecond
			},
			alone: true, built: []string{"kube-scheduler"}, err: "no answer within 50ms",
		},
		{
			name: "stalled program",
			fault: func(m *Mirror, s *settings) {
				answering("/kube-scheduler", func(w http.ResponseWriter, r *http.Request) {
					_, _ = w.Write(published("kube-scheduler"))
					_ = http.NewResponseController(w).Flush()
					silent(w, r)
				})(m, s)
				s.stall = 50 * time.Millisecond
			},
			alone: true, built: []string{"kube-scheduler"}, err: "the download stalled: ",
		},
		{
			name:  "program not found",
			fault: answering("/kube-scheduler", http.NotFound), built: []string{"kube-scheduler"}, err: "404 Not Found (kube-scheduler)",
		},
		{
			name: "nothing found", fault: answering("", http.NotFound), built: controlPlane, err: "404 Not Found (index.yaml)",
		},
		{
			name: "redirect loop",
			fault: answering("/kube-scheduler", func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, r.URL.Path, http.StatusFound)
			}),
			built: []string{"kube-scheduler"}, err: "more than 5 redirects",
		},
		{
			name: "one redirect",
			fault: func(m *Mirror, _ *settings) {
				m.change = func(w http.ResponseWriter, r *http.Request) bool {
					moved := strings.HasSuffix(r.URL.Path, "/kube-scheduler") && r.URL.RawQuery == ""
					if moved {
						http.Redirect(w, r, r.URL.Path+"?signed", http.StatusFound)
					}
					return moved
				}
			},
		},
		{
			name:  "HTML instead of a checksum",
			fault: answering("/kube-scheduler.sha256", html), built: []string{"kube-scheduler"}, err: "the answer is an HTML page",
		},
		{
			name:  "HTML instead of a program",
			fault: answering("/kube-scheduler", html), built: []string{"kube-scheduler"}, err: "the answer is an HTML page",
		},
		{name: "HTML everywhere", fault: answering("", html), built: controlPlane, err: "the answer is an HTML page"},
		{
			name: "checksum of another kind",
			fault: answering("/kube-scheduler.sha256", func(w http.ResponseWriter, _ *http.Request) {
				_, _ = fmt.Fprintf(w, "%0128d", 1)
			}),
			built: []string{"kube-scheduler"}, err: "no SHA-256 in kube-scheduler.sha256",
		},
		{
			name: "script", serve: func(programs map[string][]byte) {
				programs["kube-scheduler"] = []byte("#!/bin/sh\nexec kube-scheduler-of-somewhere\n")
			},
			built: []string{"kube-scheduler"}, err: "kube-scheduler is not a program for linux",
		},
		{
			name: "empty program", serve: func(programs map[string][]byte) { programs["kube-scheduler"] = nil },
			built: []string{"kube-scheduler"}, err: "kube-scheduler is not a program for linux",
		},
		{
			name: "program for other processors", serve: func(programs map[string][]byte) { programs["kube-scheduler"] = program(elf.EM_RISCV, "") },
			built: []string{"kube-scheduler"}, err: "kube-scheduler is a program for EM_RISCV, not for " + runtime.GOARCH,
		},
		{
			name: "envtest without the version",
			fault: answering("/index.yaml", func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte("releases:\n  v1.2.2: {}\n"))
			}),
		},
		{
			name: "envtest with another archive",
			fault: answering(envtestArchive, func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte("another archive"))
			}),
			lines: []string{"etcd: not from 127.0.0.1:", "kube-apiserver: not from 127.0.0.1:", "its SHA-512 is "},
		},
		{
			name: "envtest without programs", serve: func(programs map[string][]byte) { delete(programs, "etcd") },
			built: []string{"etcd"}, err: "no file etcd in the archive",
		},
		{
			name: "etcd nowhere",
			fault: func(m *Mirror, _ *settings) {
				m.change = func(w http.ResponseWriter, r *http.Request) bool {
					hit := r.URL.Path == "/index.yaml" || strings.HasPrefix(r.URL.Path, "/etcd/")
					if hit {
						http.NotFound(w, r)
					}
					return hit
				}
			},
			built: []string{"etcd"}, err: "404 Not Found (SHA256SUMS)",
		},
		{
			name: "kwok without a checksum", fault: func(_ *Mirror, s *settings) { s.kwokSum = "" },
			built: []string{"kwok"}, err: "testcluster/assets has no SHA-256 of kwok v0.9.9",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var serve []func(map[string][]byte)
			if test.serve != nil {
				serve = append(serve, test.serve)
			}
			m := fakeMirror(t, serve...)
			cache := emptyCache(t)
			r, err := readRecipe(t.Context(), fullSource(t), ofControlPlane)
			if err != nil {
				t.Fatal(err)
			}
			all := controlPlane
			if test.alone {
				all = []string{"kube-scheduler"}
				r.programs = []string{"k8s.io/kubernetes/cmd/kube-scheduler"}
			}
			s := mirrored(t, m, modeDownload)
			if test.fault != nil {
				test.fault(m, &s)
			}
			if test.err != "" {
				_, err := r.obtainLocked(t.Context(), s, cache, &lines{out: &bytes.Buffer{}})
				if names := strings.Join(test.built, ", "); !errors.Is(err, ErrNotDownloaded) || !strings.Contains(err.Error(), names+" (") ||
					!strings.Contains(err.Error(), test.err) {
					t.Errorf("mode download: error %v, want %q about %v", err, test.err, test.built)
				}
				if left := list(t, cache); !slices.Equal(left, []string{r.key + ".lock"}) {
					t.Errorf("mode download leaves %v", left)
				}
			}
			s.mode = modeAuto
			var progress bytes.Buffer
			dir, err := r.obtainLocked(t.Context(), s, cache, &progress)
			if err != nil {
				t.Fatal(err)
			}
			if test.err != "" {
				test.lines = append(test.lines, test.err, "from source ("+strings.Join(test.built, ", ")+")")
			}
			for _, line := range test.lines {
				if !strings.Contains(progress.String(), line) {
					t.Errorf("progress lacks %q:\n%s", line, progress.String())
				}
			}
			if n := strings.Count(progress.String(), "Building"); n > 1 || n == 1 != (len(test.built) > 0) {
				t.Errorf("%d builds:\n%s", n, progress.String())
			}
			checkFolder(t, dir, all, test.built, test.serve == nil)
			if left := list(t, cache); len(left) != 2 {
				t.Errorf("the cache holds %v, want a folder and its lock", left)
			}
		})
	}
}

// checkFolder checks the content of a folder, of which some programs are built and the others downloaded.
func checkFolder(t *testing.T, dir string, all, built []string, whole bool) {
	t.Helper()
	want := append(slices.Clone(all), "origin.json", stagesDir)
	if len(built) == len(all) {
		want = append(slices.Clone(all), stagesDir)
	}
	if diff := cmp.Diff(want, list(t, dir)); diff != "" {
		t.Errorf("folder (-want +got):\n%s", diff)
	}
	if downloaded := strings.HasSuffix(dir, downloadedSuffix); downloaded != (len(built) < len(all)) {
		t.Errorf("the name of the folder is %s", filepath.Base(dir))
	}
	for _, name := range all {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if same := bytes.Equal(content, published(name)); whole && same == slices.Contains(built, name) {
			t.Errorf("%s is the published one: %v", name, same)
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("mode of %s: %v, %v", name, info.Mode(), err)
		}
	}
	origin, err := readOrigin(dir, Built)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if hashed := strings.Contains(origin, name+" sha256 "); hashed == slices.Contains(built, name) {
			t.Errorf("the origin of %s is not right in %q", name, origin)
		}
	}
	downloaded := strings.Contains(origin, "downloaded from 127.0.0.1:")
	if strings.Contains(origin, Built) != (len(built) > 0) || downloaded != (len(built) < len(all)) {
		t.Errorf("origin %q", origin)
	}
}

func TestEnsureDownloadsOnce(t *testing.T) {
	m := fakeMirror(t)
	emptyCache(t)
	for name, value := range m.Environment() {
		t.Setenv(name, value)
	}
	dir := fullSource(t)
	t.Setenv(ModeEnv, "")
	type result struct {
		assets Assets
		err    error
	}
	results := make(chan result)
	for range 3 {
		go func() {
			assets, err := ensure(t.Context(), dir, nil)
			results <- result{assets, err}
		}()
	}
	first := <-results
	for range 2 {
		if other := <-results; first.err != nil || other != first {
			t.Errorf("%+v and %+v", first, other)
		}
	}
	requests := m.take()
	for address, n := range requests {
		if n != 1 {
			t.Errorf("%d requests for %s", n, address)
		}
	}
	// Nothing waits for the answer to this one.
	maps.DeleteFunc(requests, func(address string, _ int) bool { return strings.HasSuffix(address, "/SHA256SUMS") })
	if len(requests) != 8 { // the index and its archive, three checksums and three programs
		t.Errorf("requests %v", slices.Sorted(maps.Keys(requests)))
	}
	if !strings.Contains(first.assets.Origin, "kwok sha256 "+m.KwokSum) {
		t.Errorf("origin %q", first.assets.Origin)
	}

	again, err := ensure(t.Context(), dir, nil)
	if err != nil || again != first.assets || len(m.take()) != 0 {
		t.Errorf("again: %+v, %v, want no requests", again, err)
	}
	t.Setenv(ModeEnv, "build")
	built, err := ensure(t.Context(), dir, nil)
	if err != nil || built.Origin != Built || built.Dir == again.Dir || len(m.take()) != 0 {
		t.Errorf("mode build: %+v, %v, want a folder without downloads", built, err)
	}
	t.Setenv(ModeEnv, "download")
	if again, err := ensure(t.Context(), dir, nil); err != nil || again != built {
		t.Errorf("what was built is not used: %+v, %v", again, err)
	}
	t.Setenv(ModeEnv, "always")
	if _, err := ensure(t.Context(), dir, nil); !errors.Is(err, ErrSetting) {
		t.Errorf("unknown mode: %v", err)
	}
}

// TestServersAreAskedAtOnce has a server that does not answer before it has all first requests.
func TestServersAreAskedAtOnce(t *testing.T) {
	m := fakeMirror(t)
	first := []string{
		"/index.yaml", "/SHA256SUMS", "/kube-apiserver.sha256", "/kube-controller-manager.sha256", "/kube-scheduler.sha256", "/kwok-linux-" + runtime.GOARCH,
	}
	var arrived sync.WaitGroup
	arrived.Add(len(first))
	all := make(chan struct{})
	go func() {
		arrived.Wait()
		close(all)
	}()
	m.change = func(_ http.ResponseWriter, r *http.Request) bool {
		if slices.ContainsFunc(first, func(suffix string) bool { return strings.HasSuffix(r.URL.Path, suffix) }) {
			arrived.Done()
			select {
			case <-all:
			case <-r.Context().Done():
			}
		}
		return false
	}
	r, err := readRecipe(t.Context(), fullSource(t), ofControlPlane)
	if err != nil {
		t.Fatal(err)
	}
	s := mirrored(t, m, modeDownload)
	if _, err := r.obtainLocked(t.Context(), s, emptyCache(t), &bytes.Buffer{}); err != nil {
		t.Error(err)
	}
}

func TestDownloadEndsWithItsContext(t *testing.T) {
	m := fakeMirror(t)
	ctx, cancel := context.WithCancel(t.Context())
	m.change = func(_ http.ResponseWriter, r *http.Request) bool {
		cancel()
		<-r.Context().Done()
		return true
	}
	cache := emptyCache(t)
	r, err := readRecipe(t.Context(), fullSource(t), ofControlPlane)
	if err != nil {
		t.Fatal(err)
	}
	var progress bytes.Buffer
	if _, err := r.obtainLocked(ctx, mirrored(t, m, modeAuto), cache, &progress); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if strings.Contains(progress.String(), "Building") || len(list(t, cache)) != 1 {
		t.Errorf("cache %v after:\n%s", list(t, cache), progress.String())
	}
}

// TestMirrorHasTheLayoutOfEnvtest downloads with controller-runtime's client.
func TestMirrorHasTheLayoutOfEnvtest(t *testing.T) {
	m := fakeMirror(t)
	t.Setenv("KUBEBUILDER_ASSETS", "")
	dir := t.TempDir()
	environment := envtest.Environment{
		DownloadBinaryAssets: true, DownloadBinaryAssetsVersion: "v1.2.3", BinaryAssetsDirectory: dir, DownloadBinaryAssetsIndexURL: m.URL + "/index.yaml",
	}
	if _, err := environment.Start(); err == nil {
		t.Fatal("the programs of this test cannot run")
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		content, err := os.ReadFile(filepath.Join(dir, "1.2.3-"+runtime.GOOS+"-"+runtime.GOARCH, name))
		if err != nil || !bytes.Equal(content, published(name)) {
			t.Errorf("%s: %q, %v", name, content, err)
		}
	}
}

func TestSettings(t *testing.T) {
	usual, err := readSettings(func(string) string { return "" })
	if err != nil || usual.mode != modeAuto || usual.firstByte != 5*time.Second || usual.envtest != envtest.DefaultBinaryAssetsIndexURL {
		t.Errorf("%+v, %v", usual, err)
	}
	for name, value := range map[string]string{
		ModeEnv: "never", KwokSumEnv: "abc", EnvtestIndexEnv: "mirror.example.com", KubernetesReleasesEnv: "ftp://mirror.example.com",
		EtcdReleasesEnv: "https://", KwokReleasesEnv: "https://user:secret%@mirror.example.com",
	} {
		_, err := readSettings(func(asked string) string { return map[string]string{name: value}[asked] })
		if !errors.Is(err, ErrSetting) || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
}

// TestAddresses has the addresses of the public servers.
func TestAddresses(t *testing.T) {
	s, err := readSettings(func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	s.os, s.arch = "linux", "amd64"
	const sum = "00000000000000000000000000000000000000000000000000000000000000aa"
	v := versions{"v1.35.2", "v3.6.8", "v0.8.0"}
	for _, test := range []struct{ program, document, content, address, sum string }{
		{
			"kube-scheduler", "https://dl.k8s.io/release/v1.35.2/bin/linux/amd64/kube-scheduler.sha256", sum,
			"https://dl.k8s.io/release/v1.35.2/bin/linux/amd64/kube-scheduler", sum,
		},
		{
			"etcd", "https://github.com/etcd-io/etcd/releases/download/v3.6.8/SHA256SUMS", sum + "  etcd-v3.6.8-linux-amd64.tar.gz\n",
			"https://github.com/etcd-io/etcd/releases/download/v3.6.8/etcd-v3.6.8-linux-amd64.tar.gz", sum,
		},
		{"kwok", "", "", "https://github.com/kubernetes-sigs/kwok/releases/download/v0.8.0/kwok-linux-amd64", kwokSums["v0.8.0/linux/amd64"]},
	} {
		all := publishers(test.program, v, s)
		p := all[len(all)-1]
		r, err := p.choose(answer{content: []byte(test.content)})
		if err != nil || p.document != test.document || r.address != test.address || r.sum != test.sum {
			t.Errorf("%s: document %s, release %+v, %v", test.program, p.document, r, err)
		}
	}
	if publishers("another-program", v, s) != nil {
		t.Error("a program that nobody publishes has an address")
	}
}

// TestKwokHasAChecksum fails after a change of kwok's version until kwokSums has the new one.
func TestKwokHasAChecksum(t *testing.T) {
	dir, err := ModuleDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := readRecipe(t.Context(), filepath.Join(dir, "kube"), ofControlPlane)
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		if sum := kwokSums[r.versions.kwok+"/linux/"+arch]; !sha256Sum.is(sum) {
			t.Errorf("kwok %s has no SHA-256 for %s", r.versions.kwok, arch)
		}
	}
	for _, name := range r.names() {
		if publishers(name, r.versions, settings{}) == nil {
			t.Errorf("%s is not published", name)
		}
	}
}

func TestRedirectKeepsTLS(t *testing.T) {
	request := func(scheme string) *http.Request { return &http.Request{URL: &url.URL{Scheme: scheme}} }
	for _, test := range []struct {
		from, to string
		want     bool
	}{{"https", "https", true}, {"https", "http", false}, {"http", "http", true}, {"http", "https", true}} {
		if err := checkRedirect(request(test.to), []*http.Request{request(test.from)}); (err == nil) != test.want {
			t.Errorf("%s to %s: %v", test.from, test.to, err)
		}
	}
}

// TestErrorsHaveNoAddress has an address with a user, which may be a token.
func TestErrorsHaveNoAddress(t *testing.T) {
	m := fakeMirror(t, func(programs map[string][]byte) { programs["kube-scheduler"] = []byte("no program") })
	s := mirrored(t, m, modeDownload)
	s.kubernetes = strings.Replace(s.kubernetes, "http://", "http://secret@", 1)
	m.change = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/kube-controller-manager") {
			panic(http.ErrAbortHandler)
		}
		return false
	}
	r, err := readRecipe(t.Context(), fullSource(t), ofControlPlane)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.obtainLocked(t.Context(), s, emptyCache(t), &bytes.Buffer{})
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "EOF") {
		t.Errorf("error %v", err)
	}
}

func TestGivenFolder(t *testing.T) {
	cache := emptyCache(t)
	r, err := readRecipe(t.Context(), fullSource(t), ofControlPlane)
	if err != nil {
		t.Fatal(err)
	}
	folder := func(dir string, names ...string) string {
		for _, name := range names {
			content := "#!/bin/sh\necho Kubernetes v1.1.1\n"
			if err := os.MkdirAll(filepath.Join(dir, path.Dir(name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	all := append(slices.Clone(controlPlane), "stages/a.yaml")
	downloaded := folder(filepath.Join(cache, r.key+downloadedSuffix), all...)
	if err := writeOrigin(downloaded, map[string]programOrigin{"etcd": {Host: "example.com", SHA256: "12"}, "kwok": {}}); err != nil {
		t.Fatal(err)
	}
	link, alias := filepath.Join(t.TempDir(), "current"), filepath.Join(t.TempDir(), "cache")
	built := folder(filepath.Join(cache, r.key), all...)
	if err := errors.Join(os.Symlink(built, link), os.Symlink(cache, alias)); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		dir, line string
		want      Assets
	}{
		"none":    {},
		"missing": {dir: filepath.Join(cache, "missing"), line: "is not a folder"},
		"envtest's": {
			dir: folder(t.TempDir(), "etcd", "kube-apiserver", "kubectl"), line: "has no kube-controller-manager, kube-scheduler, kwok, stages",
		},
		"another set": {dir: folder(t.TempDir(), "kubelet")},
		"of the user": {
			dir: folder(t.TempDir(), all...), line: "has Kubernetes v1.1.1, testcluster/kube has v1.2.3", want: Assets{Version: "v1.1.1", Origin: Given},
		},
		"of the user, named as in the cache": {
			dir: folder(filepath.Join(t.TempDir(), r.key), all...), line: "has Kubernetes v1.1.1", want: Assets{Version: "v1.1.1", Origin: Given},
		},
		"built":         {dir: built, want: Assets{Version: "v1.2.3", Origin: Built}},
		"link to built": {dir: link, want: Assets{Dir: built, Version: "v1.2.3", Origin: Built}},
		"downloaded": {
			dir: downloaded, want: Assets{Version: "v1.2.3", Origin: "downloaded from example.com: etcd sha256 12; built from source: kwok"},
		},
	} {
		var progress bytes.Buffer
		got, ok, err := given(t.Context(), r, test.dir, alias, &progress)
		if test.want.Origin != "" && test.want.Dir == "" {
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
