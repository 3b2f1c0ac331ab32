// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/solonode/sno/install/apply"
	"github.com/solonode/sno/install/controlplane"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

const release = "registry.example.com/release@sha256:0123"

// podman replaces podman by a script that records its arguments and runs text, in which $out is the output folder.
func (m *machine) podman(t *testing.T, text string) (arguments string) {
	t.Helper()
	m.Podman = filepath.Join(t.TempDir(), "podman")
	arguments = m.Podman + ".arguments"
	script(t, m.Podman, `for a in "$@"; do printf '%s\n' "$a" >>"`+arguments+`"; done
out=$(echo "$6" | sed 's/:.*//')
`+text)
	m.edit(t, func(s *node.Settings) { s.Profile, s.ReleaseImage = "openshift", release })
	return arguments
}

const filled = `echo '{"kind":"ImageStream"}' >"$out/image-references"
mkdir "$out/manifests" && echo new >"$out/manifests/a.yaml"`

func (m *machine) payload(ctx context.Context, limit time.Duration) error {
	return phase.Run(ctx, []phase.Phase{{Name: "release-payload", Limit: limit, Run: newLive(m.Options).payload}}, phase.Options{})
}

func (m *machine) payloadFiles(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	tree := os.DirFS(filepath.Join(m.root, node.ReleaseManifests))
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(tree, name)
		found[name] = strings.TrimSpace(string(text))
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return found
}

var whole = map[string]string{"image-references": `{"kind":"ImageStream"}`, "manifests/a.yaml": "new"}

// The release's program writes its manifests, with the machine's pull secret, and once (U-INS-5).
func TestPayload(t *testing.T) {
	m := newMachine(t)
	arguments := m.podman(t, filled)
	for range 2 {
		if err := m.payload(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(arguments)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"run", "--rm", "--authfile", filepath.Join(m.root, node.PullSecret), "--volume", filepath.Join(m.root, node.ReleaseManifests) + ".part:/out:z", "--entrypoint", "/bin/sh", release,
		"-ec", `cp /release-manifests/image-references /out/ && exec cluster-version-operator render --output-dir=/out --release-image="$1"`, "sh", release, "",
	}
	if diff := cmp.Diff(want, strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(whole, m.payloadFiles(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	m.edit(t, func(s *node.Settings) { s.Profile = "kubernetes" })
	if err := errors.Join(os.RemoveAll(filepath.Join(m.root, node.ReleaseManifests)), os.Remove(arguments)); err != nil {
		t.Fatal(err)
	}
	if err := m.payload(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(arguments); !errors.Is(err, fs.ErrNotExist) || len(m.payloadFiles(t)) > 0 {
		t.Errorf("the payload was read in profile kubernetes: %v", err)
	}
}

// An unavailable registry is retried, without files of an earlier attempt, and reported until the limit.
func TestPayloadUnavailable(t *testing.T) {
	m := newMachine(t)
	tries := filepath.Join(t.TempDir(), "tries")
	m.podman(t, `echo try >>"`+tries+`"
[ "$(wc -l <"`+tries+`")" -ge 3 ] || { touch "$out/half"; echo "no such registry" >&2; exit 125; }
`+filled)
	if err := m.payload(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole, m.payloadFiles(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := os.RemoveAll(filepath.Join(m.root, node.ReleaseManifests)); err != nil {
		t.Fatal(err)
	}
	m.podman(t, `touch "$out/image-references"; echo "no such registry" >&2; exit 125`)
	err := m.payload(t.Context(), 300*time.Millisecond)
	if !errors.Is(err, phase.ErrLimit) || phase.ExitCode(err) != phase.ExitTimeout || !strings.Contains(err.Error(), "waiting for the release payload "+release) ||
		!strings.Contains(err.Error(), "exit status 125") || !strings.Contains(m.output.String(), "no such registry") {
		t.Errorf("error %v, output %s", err, m.output.String())
	}
	if got := m.payloadFiles(t); len(got) > 0 {
		t.Errorf("files of a failed attempt: %v", got)
	}
}

// The next run does not use what a killed run has written.
func TestPayloadKilled(t *testing.T) {
	m := newMachine(t)
	m.podman(t, `touch "$out/image-references" "$out/half"
exec tail -f /dev/null`)
	half := filepath.Join(m.root, node.ReleaseManifests+".part/half")
	ctx, kill := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- m.payload(ctx, time.Minute) }()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for _, err := os.Stat(half); err != nil; _, err = os.Stat(half) {
		select {
		case err := <-ended:
			t.Fatal(err)
		case <-ticker.C:
		}
	}
	kill()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("killed: %v", err)
	}
	if got := m.payloadFiles(t); len(got) > 0 {
		t.Errorf("files of a killed run: %v", got)
	}
	m.podman(t, filled)
	if err := m.payload(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole, m.payloadFiles(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// With a release payload the static pods use its images.
func TestRenderRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("makes all keys")
	}
	m := newMachine(t)
	var tags []string
	for _, name := range []string{"hyperkube", "etcd", "tools", "cluster-etcd-operator", "cluster-kube-apiserver-operator", "cluster-kube-controller-manager-operator", "cluster-kube-scheduler-operator", "cluster-policy-controller", "cluster-config-operator"} {
		tags = append(tags, fmt.Sprintf(`{"name":%q,"annotations":{"io.openshift.build.versions":"kubernetes=1.35.2"},"from":{"kind":"DockerImage","name":"registry.example.com/%s@sha256:0123"}}`, name, name))
	}
	m.podman(t, `echo '{"kind":"ImageStream","metadata":{"name":"4.22.0"},"spec":{"tags":[`+strings.Join(tags, ",")+`]}}' >"$out/image-references"`)
	m.edit(t, func(s *node.Settings) { s.KubernetesVersion = "" })
	if _, err := m.run(t, "static-pods"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for name, image := range map[string]string{"etcd-pod.yaml": "etcd", "kube-apiserver-pod.yaml": "hyperkube", "kube-scheduler-pod.yaml": "hyperkube"} {
		text, err := os.ReadFile(filepath.Join(m.root, node.ManifestDir, name))
		if err != nil || !strings.Contains(string(text), "registry.example.com/"+image+"@sha256:0123") {
			t.Errorf("%s does not have the payload's %s: %v", name, image, err)
		}
	}
}

// The manifests of the release are applied after the rendered ones, of which the first counts. No kind is skipped,
// because operators act on all of them (R-BIP-12, R-BIP-13).
func TestApplyRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	environment := apiServer(t)
	m := newMachine(t)
	m.podman(t, "exit 1")
	text := func(name, from string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: default, name: " + name + "}\ndata: {from: " + from + "}\n"
	}
	put(t, m.root, node.Rendered+"/"+controlplane.Kubeconfig, string(environment.KubeConfig))
	put(t, m.root, node.Rendered+"/manifests/z.yaml", text("both", "rendered"))
	put(t, m.root, node.ReleaseManifests+"/manifests/a.yaml", text("both", "release"))
	put(t, m.root, node.ReleaseManifests+"/manifests/b.yaml", text("release", "release"))
	operator := node.ReleaseManifests + "/manifests/operator.yaml"
	put(t, m.root, operator, "apiVersion: operator.openshift.io/v1\nkind: Etcd\nmetadata: {name: cluster}\n")
	run := func() error {
		return phase.Run(t.Context(), []phase.Phase{{Name: "apply-manifests", Limit: time.Second, Run: newLive(m.Options).apply}}, phase.Options{})
	}
	if err := run(); !errors.Is(err, apply.ErrFailed) || !strings.Contains(err.Error(), "release-manifests/manifests/operator.yaml: Etcd cluster: ") {
		t.Errorf("a kind without a definition: %v", err)
	}
	if _, err := os.Stat(filepath.Join(m.root, applied)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the phase is marked as done: %v", err)
	}
	if err := os.Remove(filepath.Join(m.root, operator)); err != nil {
		t.Fatal(err)
	}
	if err := run(); err != nil {
		t.Fatal(err)
	}
	maps := kubernetes.NewForConfigOrDie(environment.Config).CoreV1().ConfigMaps("default")
	for name, want := range map[string]string{"both": "rendered", "release": "release"} {
		if got, err := maps.Get(t.Context(), name, metav1.GetOptions{}); err != nil || got.Data["from"] != want {
			t.Errorf("%s: %v, %v", name, got.Data, err)
		}
	}
	note, err := os.ReadFile(filepath.Join(m.root, applied))
	if diff := cmp.Diff("2 objects and statuses\n", string(note)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
