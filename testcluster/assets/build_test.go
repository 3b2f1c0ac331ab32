// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"
)

// kwok is the folder of tools/kwok, relative to that of testcluster/kube.
const kwok = "../../tools/kwok/"

// source writes a module that resembles testcluster/kube but builds fast and without a proxy: two programs, and kwok's
// stages.
func source(t *testing.T, change ...func(files map[string]string)) string {
	t.Helper()
	const program = "package main\n\nimport \"os\"\n\nvar Version = \"unset\"\n\nfunc main() { os.Stdout.WriteString(Version) }\n"
	files := map[string]string{
		"go.mod": `module example.com/kube

go 1.26.0

tool (
	go.etcd.io/etcd/server/v3
	k8s.io/kubernetes/cmd/kube-apiserver
)

require (
	go.etcd.io/etcd/server/v3 v3.9.9
	k8s.io/kubernetes v1.2.3
)

replace (
	go.etcd.io/etcd/server/v3 => ./etcd
	k8s.io/component-base => ./component-base
	k8s.io/kubernetes => ./kubernetes
)

require k8s.io/component-base v0.0.0
`,
		"etcd/go.mod":           "module go.etcd.io/etcd/server/v3\n\ngo 1.26.0\n",
		"etcd/main.go":          program,
		"component-base/go.mod": "module k8s.io/component-base\n\ngo 1.26.0\n",
		"component-base/version/version.go": "package version\n\nvar (\n\tgitVersion = \"unset\"\n\tgitMajor, gitMinor string\n)\n\n" +
			"func String() string { return gitVersion + \" \" + gitMajor + \" \" + gitMinor }\n",
		"kubernetes/go.mod": "module k8s.io/kubernetes\n\ngo 1.26.0\n\nrequire k8s.io/component-base v0.0.0\n",
		"kubernetes/cmd/kube-apiserver/main.go": "package main\n\nimport (\n\t\"os\"\n\n\t\"k8s.io/component-base/version\"\n)\n\n" +
			"func main() { os.Stdout.WriteString(version.String()) }\n",
		kwok + "go.mod": "module example.com/kwok\n\ngo 1.26.0\n\ntool sigs.k8s.io/kwok/cmd/kwok\n\nrequire sigs.k8s.io/kwok v0.9.9\n\n" +
			"replace sigs.k8s.io/kwok => ./module\n",
		kwok + "module/go.mod":                                           "module sigs.k8s.io/kwok\n\ngo 1.26.0\n",
		kwok + "module/cmd/kwok/main.go":                                 program,
		kwok + "module/kustomize/stage/node/fast/a.yaml":                 "a",
		kwok + "module/kustomize/stage/node/fast/kustomization.yaml":     "no stage",
		kwok + "module/kustomize/stage/node/heartbeat-with-lease/b.yaml": "b",
		kwok + "module/kustomize/stage/pod/fast/c.yaml":                  "c",
		kwok + "module/kustomize/stage/pod/chaos/d.yaml":                 "not wanted",
	}
	for _, f := range change {
		f(files)
	}
	dir := filepath.Join(t.TempDir(), "testcluster", "kube")
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func emptyCache(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv(CacheEnv, dir)
	t.Setenv(ModeEnv, "build")
	for _, env := range []string{GivenEnv, KubernetesReleasesEnv, EtcdReleasesEnv, KwokReleasesEnv} {
		t.Setenv(env, "")
	}
	t.Setenv("GOPROXY", "file://"+filepath.ToSlash(t.TempDir()))
	t.Setenv("GOFLAGS", "")
	return filepath.Join(dir, "kube")
}

func ensure(ctx context.Context, source string, progress io.Writer) (Assets, error) {
	r, err := readRecipe(ctx, source, ofControlPlane)
	if err != nil {
		return Assets{}, err
	}
	return r.ensure(ctx, progress)
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestEnsureBuildsOnce(t *testing.T) {
	cache := emptyCache(t)
	dir := source(t)
	var progress bytes.Buffer
	first, err := ensure(t.Context(), dir, &progress)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Building Kubernetes v1.2.3 from source (etcd, kube-apiserver, kwok)", "Reason: SNO_ASSETS=build",
		"Built Kubernetes v1.2.3",
	} {
		if !strings.Contains(progress.String(), want) {
			t.Errorf("progress %q lacks %q", progress.String(), want)
		}
	}
	if diff := cmp.Diff([]string{"etcd", "kube-apiserver", "kwok", "stages"}, list(t, first.Dir)); diff != "" {
		t.Errorf("folder (-want +got):\n%s", diff)
	}
	out, err := exec.CommandContext(t.Context(), first.Program("kube-apiserver")).Output()
	if err != nil || string(out) != "v1.2.3 1 2" {
		t.Errorf("the stamped version is %q, %v", out, err)
	}
	stages, err := first.Stages()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, stage := range stages {
		names = append(names, filepath.Base(stage))
	}
	if diff := cmp.Diff([]string{"a.yaml", "b.yaml", "c.yaml"}, names); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(first.Dir); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode of the folder: %v, %v", info.Mode(), err)
	}

	progress.Reset()
	second, err := ensure(t.Context(), dir, &progress)
	if err != nil || second != first || progress.Len() != 0 {
		t.Errorf("again: %v, %v, progress %q, want the same without a build", second, err, progress.String())
	}

	other, err := ensure(t.Context(), source(t, func(files map[string]string) {
		files["go.mod"] = strings.Replace(files["go.mod"], "v1.2.3", "v1.2.4", 1)
	}), nil)
	if err != nil || other.Version != "v1.2.4" || other.Dir == first.Dir || filepath.Dir(other.Dir) != cache {
		t.Errorf("another version: %+v, %v", other, err)
	}
}

func TestKeyFollowsWhatIsBuilt(t *testing.T) {
	emptyCache(t)
	keys := map[string]string{}
	for name, change := range map[string]func(files map[string]string){
		"unchanged": func(map[string]string) {},
		"go.mod":    func(files map[string]string) { files["go.mod"] += "// another version of something\n" },
		"go.sum":    func(files map[string]string) { files["go.sum"] = "example.com/x v1.0.0 h1:x\n" },
	} {
		r, err := readRecipe(t.Context(), source(t, change), ofControlPlane)
		if err != nil {
			t.Fatal(err)
		}
		if same, ok := keys[r.key]; ok {
			t.Errorf("%s and %s have the same key", name, same)
		}
		keys[r.key] = name
	}
	again, err := readRecipe(t.Context(), source(t), ofControlPlane)
	if err != nil || keys[again.key] != "unchanged" {
		t.Errorf("the same files in another folder have another key, %v", err)
	}
}

func TestDigest(t *testing.T) {
	seen := map[string][]string{}
	for _, parts := range [][]string{{"a", "b"}, {"ab", ""}, {"a", "b", ""}, {"b", "a"}} {
		key := Digest(parts...)
		if other, ok := seen[key]; ok {
			t.Errorf("%q and %q have the same key", parts, other)
		}
		seen[key] = parts
		if key != Digest(parts...) {
			t.Errorf("%q", key)
		}
	}
}

func TestEnsureWaitsForAnotherProcess(t *testing.T) {
	cache := emptyCache(t)
	dir := source(t)
	r, err := readRecipe(t.Context(), dir, ofControlPlane)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	other := flock.New(filepath.Join(cache, r.key+".lock"))
	if locked, err := other.TryLock(); err != nil || !locked {
		t.Fatalf("lock: %v, %v", locked, err)
	}
	defer func() { _ = other.Unlock() }()

	cancelled, cancel := context.WithCancel(t.Context())
	said, wait := waiting(cancelled, dir)
	if line := <-said; !strings.Contains(line, "being downloaded or built by another process") {
		t.Errorf("progress %q does not contain what it waits for", line)
	}
	cancel()
	if _, err := wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting with a context that is over: %v", err)
	}

	said, wait = waiting(t.Context(), dir)
	<-said
	if err := os.Mkdir(filepath.Join(cache, r.key), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := other.Unlock(); err != nil {
		t.Fatal(err)
	}
	assets, err := wait()
	if err != nil {
		t.Fatal(err)
	}
	if left := list(t, assets.Dir); len(left) != 0 {
		t.Errorf("it built %v though the other process had", left)
	}
}

func waiting(ctx context.Context, dir string) (<-chan string, func() (Assets, error)) {
	reader, writer := io.Pipe()
	type result struct {
		assets Assets
		err    error
	}
	done := make(chan result, 1)
	go func() {
		assets, err := ensure(ctx, dir, writer)
		_ = writer.Close()
		done <- result{assets, err}
	}()
	said := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(reader).ReadString('\n')
		said <- line
		_, _ = io.Copy(io.Discard, reader)
	}()
	return said, func() (Assets, error) {
		r := <-done
		return r.assets, r.err
	}
}

func TestEnsureFailures(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(files map[string]string)
		is     error
		want   []string
	}{
		{
			name: "version that no proxy has",
			change: func(files map[string]string) {
				files["go.mod"] = strings.Replace(files["go.mod"], "	k8s.io/kubernetes => ./kubernetes\n", "", 1)
				const digest = "h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
				files["go.sum"] = "k8s.io/kubernetes v1.2.3 " + digest + "k8s.io/kubernetes v1.2.3/go.mod " + digest
			},
			is:   ErrModuleUnavailable,
			want: []string{"module k8s.io/kubernetes at version v1.2.3", "GOPROXY", "testcluster/kube/go.mod"},
		},
		{
			name: "program that does not compile",
			change: func(files map[string]string) {
				files["etcd/main.go"] = "package main\n\nfunc main() { undefinedName() }\n"
			},
			want: []string{"build go.etcd.io/etcd/server/v3", "undefined: undefinedName"},
		},
		{
			name:   "kwok without stages",
			change: func(files map[string]string) { delete(files, kwok+"module/kustomize/stage/pod/fast/c.yaml") },
			want:   []string{"no simulation stages in kustomize/stage/pod/fast"},
		},
		{
			name: "no Kubernetes",
			change: func(files map[string]string) {
				files["go.mod"] = "module example.com/kube\n\ntool k8s.io/kubernetes/cmd/x\n"
			},
			want: []string{"does not require k8s.io/kubernetes"},
		},
		{
			name:   "no module",
			change: func(files map[string]string) { delete(files, "go.mod") },
			is:     ErrNoSource,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			cache := emptyCache(t)
			_, err := ensure(t.Context(), source(t, test.change), nil)
			if err == nil || test.is != nil && !errors.Is(err, test.is) {
				t.Fatalf("error %v, want %v", err, test.is)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
			left, err := filepath.Glob(filepath.Join(cache, "*"))
			if err != nil {
				t.Fatal(err)
			}
			hidden, err := filepath.Glob(filepath.Join(cache, ".*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range append(left, hidden...) {
				if !strings.HasSuffix(path, ".lock") {
					t.Errorf("a failed build leaves %s", path)
				}
			}
		})
	}
}

func TestModuleDirIsFound(t *testing.T) {
	keys := map[string]bool{}
	kube, err := kubeSource(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	management, err := ocmSource(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []struct {
		source    string
		wanted    func(string) bool
		want      []string
		simulates bool
	}{
		{kube, ofControlPlane, []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}, true},
		{kube, ofNode, []string{"kube-proxy", "kubeadm", "kubectl", "kubelet"}, false},
		{kube, ofSuite, []string{"ginkgo", "e2e.test", "agnhost"}, false},
		{management, ofOCM, []string{"addon", "placement", "registration", "registration-operator"}, false},
	} {
		r, err := readRecipe(t.Context(), set.source, set.wanted)
		if err != nil {
			t.Fatal(err)
		}
		var programs []string
		for _, pkg := range r.programs {
			programs = append(programs, programName(pkg))
		}
		if diff := cmp.Diff(set.want, programs); diff != "" || r.simulates != set.simulates {
			t.Errorf("simulates %v, programs (-want +got):\n%s", r.simulates, diff)
		}
		keys[r.key] = true
	}
	if len(keys) != 4 {
		t.Error("two sets of programs go into one folder of the cache")
	}
	if _, err := ModuleFolder(t.Context(), "example.com/not/required"); err == nil {
		t.Error("a module that is not required has a folder")
	}
}

func TestEnsureBuildsASuite(t *testing.T) {
	emptyCache(t)
	t.Setenv(ModeEnv, "download") // they are not released
	dir := source(t, func(files map[string]string) {
		files["go.mod"] = strings.Replace(files["go.mod"], "\tgo.etcd.io/etcd/server/v3\n\tk8s.io/kubernetes/cmd/kube-apiserver\n", "\tk8s.io/kubernetes/test/e2e\n", 1)
		files["kubernetes/test/e2e/e2e.go"] = "package e2e\n"
		files["kubernetes/test/e2e/e2e_test.go"] = "package e2e\n\nimport (\n\t\"os\"\n\t\"testing\"\n\n\t\"k8s.io/component-base/version\"\n)\n\n" +
			"func TestMain(*testing.M) { os.Stdout.WriteString(version.String()) }\n"
	})
	r, err := readRecipe(t.Context(), dir, ofSuite)
	if err != nil {
		t.Fatal(err)
	}
	a, err := r.ensure(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), a.Program("e2e.test")).CombinedOutput()
	if err != nil || string(out) != "v1.2.3 1 2" {
		t.Errorf("e2e.test printed %q, %v", out, err)
	}
}

func TestEnsureBuildsOCM(t *testing.T) {
	emptyCache(t)
	t.Setenv(ModeEnv, "download") // they are not released
	dir := source(t, func(files map[string]string) {
		files["go.mod"] = "module example.com/ocm\n\ngo 1.26.0\n\ntool open-cluster-management.io/ocm/cmd/placement\n\n" +
			"require open-cluster-management.io/ocm v1.2.3\n\nreplace open-cluster-management.io/ocm => ./ocm\n"
		files["ocm/go.mod"] = "module open-cluster-management.io/ocm\n\ngo 1.26.0\n"
		files["ocm/cmd/placement/main.go"] = files["etcd/main.go"]
		files["../go.work"] = "go 1.26.0\n" // which has other versions, and not this module
	})
	r, err := readRecipe(t.Context(), dir, ofOCM)
	if err != nil {
		t.Fatal(err)
	}
	var progress bytes.Buffer
	a, err := r.ensure(t.Context(), &progress)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), a.Program("placement")).Output(); err != nil || string(out) != "unset" {
		t.Errorf("placement printed %q, %v", out, err)
	}
	if want := "Built Open Cluster Management v1.2.3"; !strings.Contains(progress.String(), want) {
		t.Errorf("progress %q lacks %q", progress.String(), want)
	}
}
