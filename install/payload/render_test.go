// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/solonode/sno/install/credentials"
	"github.com/solonode/sno/install/internal/fixture"
)

type machine struct {
	Renderer
	state string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{Renderer: Renderer{Podman: os.Args[0], PullSecret: "/pull-secret", Assets: t.TempDir(), Output: io.Discard}, state: t.TempDir()}
	m.execute = func(_ context.Context, stdout, stderr io.Writer, arguments ...string) error {
		err := podman{m.state}.run(stdout, stderr, arguments)
		if err != nil {
			fmt.Fprintln(stderr, err)
		}
		return err
	}
	m.says(t, metadata, `{"kind":"cincinnati-metadata-v0","version":"`+testVersion+`"}`)
	m.says(t, references, imageReferences(t, ""))
	for _, name := range append([]string{"../auth/kubeconfig", "../auth/kubeconfig-loopback", "../auth/kubeconfig-kubelet"}, keys...) {
		m.has(t, filepath.Join(tlsDir, name), "a key\n")
	}
	object := "apiVersion: config.openshift.io/v1\nkind: %\nmetadata: {name: cluster}\n"
	for name, kind := range map[string]string{"99_feature-gate.yaml": "FeatureGate", "cluster-network-02-config.yml": "Network", "cluster-infrastructure-02-config.yml": "Infrastructure",
		"cluster-authentication-02-config.yml": "Authentication", "cluster-config.yaml": "Other", "openshift-config-secret-pull-secret.yaml": "PullSecret"} {
		m.has(t, filepath.Join(manifestDir, name), strings.Replace(object, "%", kind, 1))
	}
	return m
}

func (m *machine) has(t *testing.T, name, text string) {
	t.Helper()
	fixture.NoError(t, put(filepath.Join(m.Assets, name), text))
}

// says changes the stand-in.
func (m *machine) says(t *testing.T, name, text string) {
	t.Helper()
	fixture.NoError(t, put(filepath.Join(m.state, name), text))
}

func (m *machine) render(ctx context.Context) error {
	release, err := m.Release(ctx, testRelease)
	if err != nil {
		return err
	}
	return m.Render(ctx, release, func(string) {})
}

func (m *machine) calls(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(m.state, "calls"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// Each render runs once, in order, and its files are where the bootstrap phase takes them from.
func TestRender(t *testing.T) {
	m := newMachine(t)
	t.Setenv(stateVariable, m.state)
	m.execute = nil // a process, as podman is
	for range 2 {
		fixture.NoError(t, m.render(t.Context()))
	}
	fixture.Equal(t, "calls", Names(), m.calls(t))
	for _, name := range []string{
		"manifests/api-render.yaml", "manifests/etcd-render.yaml", "tls/etcd-client.key", "bootstrap-manifests/bootstrap-pod.yaml", "bootstrap-manifests/kube-apiserver-pod.yaml",
		"bootstrap-manifests/kube-scheduler-pod.yaml", "kube-controller-manager-bootstrap/cpc-config", "etcd-bootstrap/etc-kubernetes/manifests/etcd-member-pod.yaml",
		"manifests/cluster-ingress-00-custom-resource-definition.yaml", "mco-bootstrap/bootstrap/machineconfigoperator-bootstrap-pod.yaml",
	} {
		if info, err := os.Stat(filepath.Join(m.Assets, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if gate, err := os.ReadFile(filepath.Join(m.Assets, featureGate)); err != nil || !strings.Contains(string(gate), testVersion) {
		t.Errorf("the FeatureGate has no status: %s, %v", gate, err)
	}
	if left, _ := filepath.Glob(filepath.Join(m.Assets, "*.part")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A call that ended at any render goes on there. An output that was not accepted is made anew.
func TestResume(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for _, s := range steps {
		m.says(t, "fault-"+s.name, "exit")
		if err := m.render(t.Context()); !errors.Is(err, ErrCommand) || !strings.Contains(err.Error(), s.name+" of image ") || !strings.HasSuffix(err.Error(), "Error: could not parse") {
			t.Fatalf("%s: %v", s.name, err)
		}
		m.has(t, filepath.Join(s.output+".part", manifestDir, "half.yaml"), "apiVersion: v1\n")
		m.says(t, "fault-"+s.name, "")
	}
	fixture.NoError(t, m.render(t.Context()))
	var want []string
	for _, s := range steps {
		want = append(want, s.name, s.name)
	}
	fixture.Equal(t, "calls", want, m.calls(t))
	if found, _ := filepath.Glob(filepath.Join(m.Assets, "*", "half.yaml")); len(found) > 0 {
		t.Errorf("files of an output that was not accepted: %v", found)
	}
}

// Without network at any pull the error names the render and its image, is none of the input, and the same call goes on.
func TestNoNetwork(t *testing.T) {
	t.Parallel()
	every := 1
	if testing.Short() {
		every = 5
	}
	for failAt := 1; ; failAt += every {
		m := newMachine(t)
		inner, calls, image := m.execute, 0, ""
		m.execute = func(ctx context.Context, stdout, stderr io.Writer, arguments ...string) error {
			if calls++; calls < failAt {
				return inner(ctx, stdout, stderr, arguments...)
			}
			image = arguments[slices.IndexFunc(arguments, func(a string) bool { return strings.Contains(a, "@sha256:") })]
			fmt.Fprintln(stderr, "Error: initializing source docker://"+image+": pinging container registry: dial tcp: no such host")
			return exec.CommandContext(ctx, "sh", "-c", "exit 125").Run() // podman's own error
		}
		err := m.render(t.Context())
		if calls < failAt {
			return
		}
		if !errors.Is(err, ErrCommand) || errors.Is(err, ErrFlag) || errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "no such host") || !strings.Contains(err.Error(), image) {
			t.Fatalf("call %d: %v", failAt, err)
		}
		m.execute = inner
		if err := m.render(t.Context()); err != nil {
			t.Fatalf("after call %d: %v", failAt, err)
		}
	}
}

// Bad input gives an error with the render, its image, and the file or the flag.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(t *testing.T, m *machine)
		is     error
		want   string
	}{
		"a key is empty": {func(t *testing.T, m *machine) { m.has(t, "tls/kubelet-signer.key", " \n") }, ErrMissing, "before the renders: tls/kubelet-signer.key: missing or empty"},
		"a key is missing": {func(t *testing.T, m *machine) {
			fixture.NoError(t, os.Remove(filepath.Join(m.Assets, "tls/service-account.pub")))
		}, ErrMissing, "tls/service-account.pub: missing or empty"},
		"no kubeconfig":      {func(t *testing.T, m *machine) { m.has(t, "auth/kubeconfig", "") }, ErrMissing, "auth/kubeconfig"},
		"a tag":              {func(t *testing.T, m *machine) { m.says(t, references, imageReferences(t, "cluster-etcd-operator")) }, ErrTag, "etcd-render: release image " + testRelease + ": the release payload has no image of this name: cluster-etcd-operator"},
		"a tag of a flag":    {func(t *testing.T, m *machine) { m.says(t, references, imageReferences(t, "etcd")) }, ErrTag, "--etcd-image: release image"},
		"no version":         {func(t *testing.T, m *machine) { m.says(t, metadata, `{}`) }, ErrPayload, "release-metadata has no version"},
		"no Kubernetes":      {func(t *testing.T, m *machine) { m.says(t, references, imageReferences(t, "hyperkube")) }, ErrPayload, "tag hyperkube has no version of Kubernetes"},
		"an unknown flag":    {func(t *testing.T, m *machine) { m.says(t, "unknown-flag", "prefix") }, ErrFlag, "ingress-render of image quay.io/example/cluster-ingress-operator@sha256:"},
		"nothing is written": {func(t *testing.T, m *machine) { m.says(t, "fault-kube-apiserver-render", "nothing") }, ErrMissing, "bootstrap-manifests/kube-apiserver-pod.yaml: missing or empty"},
		"an empty value":     {func(t *testing.T, m *machine) { m.says(t, "fault-kube-controller-render", "empty key") }, ErrMissing, "kube-controller-render of image quay.io/example/cluster-kube-controller-manager-operator@sha256:"},
		"an object, twice":   {func(t *testing.T, m *machine) { m.says(t, "fault-mco-render", "other object") }, ErrDifferent, "Namespace /api-render: set differently by manifests/api-render.yaml and manifests/again.yaml"},
		"a file, twice":      {func(t *testing.T, m *machine) { m.says(t, "fault-mco-render", "other file") }, ErrDifferent, "manifests/cluster-config.yaml: set differently by mco-render and a file that was there before"},
		"no FeatureGate":     {func(t *testing.T, m *machine) { _ = os.Remove(filepath.Join(m.Assets, featureGate)) }, ErrCommand, "api-render of image "},
		"a network that is refused": {func(t *testing.T, m *machine) {
			m.has(t, "manifests/cluster-config.yaml", "kind: Other\nmachineNetwork: [{cidr: 192.0.2.0/24}]\n")
		}, ErrCommand, "etcd-render of image quay.io/example/cluster-etcd-operator@sha256:"},
		"a network that is refused, the reason": {func(t *testing.T, m *machine) {
			m.has(t, "manifests/cluster-config.yaml", "kind: Other\nmachineNetwork: [{cidr: 192.0.2.0/24}]\n")
		}, ErrCommand, `machineNetwork CIDR is reserved and unsupported: "192.0.2.0"`},
		"no network manifest": {func(t *testing.T, m *machine) {
			_ = os.Remove(filepath.Join(m.Assets, "manifests/cluster-network-02-config.yml"))
		}, ErrCommand, "etcd-render of image "},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			test.change(t, m)
			if err := m.render(t.Context()); !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// A render that hangs ends at its limit, and the next call runs it again.
func TestLimit(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	release := fixture.Must(m.Release(t.Context(), testRelease))
	slow := filepath.Join(t.TempDir(), "podman")
	fixture.NoError(t, os.WriteFile(slow, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o700))
	hangs := m.Renderer
	hangs.Podman, hangs.Limit, hangs.execute = slow, 50*time.Millisecond, nil
	if err := hangs.Render(t.Context(), release, func(string) {}); !errors.Is(err, ErrCommand) || !strings.Contains(err.Error(), "api-render of image quay.io/example/cluster-config-api") || !strings.Contains(err.Error(), "it has not ended after 50ms") {
		t.Errorf("error %v", err)
	}
	if err := m.render(t.Context()); err != nil {
		t.Error(err)
	}
}

// An optional flag that a release does not know is left out.
func TestOptionalFlags(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.says(t, "unknown-flag", "feature-gate-manifest-path")
	if err := m.render(t.Context()); err != nil {
		t.Error(err)
	}
}

// The installer's files have every key that a render or a static pod reads.
func TestKeys(t *testing.T) {
	t.Parallel()
	made := fixture.Must(credentials.BootstrapFiles(t.Context(), credentials.BootstrapOptions{
		Domain: "sno.example.com", Now: time.Now(), RootCA: []byte("a"), Server: []byte("b"), ServerKey: []byte("c"),
	}))
	assets := fstest.MapFS{}
	for _, f := range made {
		assets[f.Path] = &fstest.MapFile{Data: f.Content}
	}
	if err := checkInputs(assets); err != nil {
		t.Error(err)
	}
}
