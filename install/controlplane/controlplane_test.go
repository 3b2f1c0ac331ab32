// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/rotate"

	"github.com/solonode/sno/install/controlplane"
	"github.com/solonode/sno/install/controlplane/controlplanetest"
	"github.com/solonode/sno/install/installconfig"
	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

// configFiles returns the files of the Ignition config, once: RSA keys are slow to make.
var configFiles = sync.OnceValues(func() ([]files.File, error) {
	return controlplanetest.ConfigFiles(context.Background(), installconfig.AllInOne, "etc/settings.yaml", "var/manifests")
})

func newMachine(t *testing.T) (*controlplane.Machine, *bytes.Buffer) {
	t.Helper()
	all := fixture.Must(configFiles())
	output := &bytes.Buffer{}
	m := &controlplane.Machine{
		Root: t.TempDir(), SettingsFile: "etc/settings.yaml", Manifests: "var/manifests", Rendered: "var/rendered", Output: output, Interval: 10 * time.Millisecond,
		Host: func() (controlplane.Host, error) {
			return controlplane.Host{Name: "Master0.example.com", Interfaces: []controlplane.Interface{{Name: "eno1", Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.10/24")}}}}, nil
		},
	}
	fixture.Must(rotate.WriteChanged(m.Root, all))
	return m, output
}

// A config whose certificates have ended is refused, and nothing is rendered.
func TestRenderEnded(t *testing.T) {
	for name, c := range map[string]struct {
		age               time.Duration
		profile, validity string
		ended             bool
	}{
		"ended":          {time.Hour, "kubernetes", "1h", true},
		"ends":           {59 * time.Minute, "kubernetes", "1h", false},
		"release, ended": {24 * time.Hour, "openshift", "87600h", true},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := newMachine(t)
			s := fixture.Must(m.Settings())
			s.Created = time.Now().Add(-c.age).UTC().Format(time.RFC3339)
			s.Profile, s.Validity = c.profile, c.validity
			text, err := s.Encode()
			fixture.NoError(t, err)
			fixture.Put(t, m.Root, m.SettingsFile, string(text))
			err = m.Render(t.Context(), nil)
			if c.ended != errors.Is(err, controlplane.ErrExpired) || c.ended != errors.Is(err, phase.ErrInput) {
				t.Errorf("%v", err)
			}
			if done, err := m.IsRendered(t.Context()); done == c.ended || err != nil {
				t.Errorf("rendered %t, %v", done, err)
			}
		})
	}
}

// Render waits until the machine has its name. The static pods have that name, are readable by root only, and use the
// local API server (R-BIP-14, R-AIO-5).
func TestRender(t *testing.T) {
	m, output := newMachine(t)
	host, tries := m.Host, 0
	m.Host = func() (controlplane.Host, error) {
		if tries++; tries < 3 {
			return controlplane.Host{Name: "localhost"}, nil
		}
		return host()
	}
	fixture.Put(t, m.Root, "var/rendered/files/etc/left-over", "") // of a run that was killed
	if done, err := m.IsRendered(t.Context()); done || err != nil {
		t.Errorf("rendered before: %v, %v", done, err)
	}
	if err := m.Render(t.Context(), nil); err != nil || tries != 3 {
		t.Fatalf("%d tries, %v", tries, err)
	}
	if done, err := m.IsRendered(t.Context()); !done || err != nil {
		t.Errorf("rendered afterwards: %v, %v", done, err)
	}
	s, err := m.Settings()
	if err != nil || s.Name != "master0.example.com" || fmt.Sprint(s.Addresses) != "[192.0.2.10]" {
		t.Errorf("settings %+v, %v", s, err)
	}
	fixture.NoError(t, m.WriteStaticPods())
	keys := 0
	for _, f := range fixture.Must(m.StaticPodFiles()) {
		for _, name := range []string{f.Path, filepath.Dir(f.Path)} {
			if info := fixture.Must(os.Stat(m.Path(name))); strings.HasPrefix(name, node.ResourceDir) && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %o", name, info.Mode())
			}
		}
		if filepath.Ext(f.Path) == ".key" {
			keys++
		}
	}
	if keys == 0 {
		t.Error("there are no keys")
	}
	for _, name := range node.StaticPods {
		var pod corev1.Pod
		text, err := os.ReadFile(filepath.Join(m.Root, node.ManifestDir, name))
		if err == nil {
			err = yaml.Unmarshal(text, &pod)
		}
		if err != nil || pod.Kind != "Pod" {
			t.Errorf("%s: %v, %v", name, pod.Kind, err)
		}
	}
	fixture.Absent(t, filepath.Join(m.Root, "etc/left-over"))
	client, err := m.ClientConfig()
	if err != nil || client.Host != "https://localhost:6443" || len(client.CertData) == 0 {
		t.Errorf("client of %s, %v", client.Host, err)
	}
	if strings.Contains(output.String(), "PRIVATE KEY") {
		t.Error("the output has a key")
	}
}

// Errors of the input are ErrInput, name the file, and are not retried.
func TestInput(t *testing.T) {
	for name, test := range map[string]struct {
		file, text, want string
	}{
		"settings of another version": {"etc/settings.yaml", "profile: kubernetes\nnew: field\n", "etc/settings.yaml"},
		"truncated settings":          {"etc/settings.yaml", "profile: [", "etc/settings.yaml"},
		"a manifest":                  {"var/manifests/extra.yaml", "apiVersion: config.openshift.io/v1\nkind: APIServer\nmetadata: {name: cluster}\nspec: {unknownField: a}\n", "unknownField"},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := newMachine(t)
			fixture.Put(t, m.Root, test.file, test.text)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := m.Render(ctx, nil)
			if !errors.Is(err, phase.ErrInput) || phase.ExitCode(err) != phase.ExitInput || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			if done, err := m.IsRendered(t.Context()); done || err != nil {
				t.Errorf("rendered: %v, %v", done, err)
			}
		})
	}
	m, _ := newMachine(t)
	fixture.NoError(t, os.Remove(m.Path(m.SettingsFile)))
	_, err := m.Settings()
	fixture.Fails(t, "no settings", err, phase.ErrInput, node.ErrSettings, "etc/settings.yaml")
}

// If a file cannot be written, no manifest of a pod is: the kubelet would start it.
func TestWriteStaticPods(t *testing.T) {
	m := &controlplane.Machine{Root: t.TempDir(), Rendered: "var/rendered"}
	rendered := []string{node.ManifestDir + "/etcd-pod.yaml", node.ResourceDir + "/etcd-certs/a.key", "usr/local/bin/z"}
	for _, name := range rendered {
		fixture.Put(t, m.Root, m.Rendered+"/files/"+name, name)
	}
	if err := os.Chmod(m.Path(m.Rendered+"/files/usr/local/bin/z"), 0o755); err != nil { //nolint:gosec // a mode of the test
		t.Fatal(err)
	}
	obstacle := m.Path("usr/local/bin/z/folder")
	fixture.NoError(t, os.MkdirAll(obstacle, 0o700))
	fixture.Fails(t, "a folder at the path of a file", m.WriteStaticPods(), "usr/local/bin/z")
	fixture.Absent(t, m.Path(rendered[0]))
	fixture.NoError(t, os.RemoveAll(m.Path("usr/local/bin/z")))
	fixture.NoError(t, m.WriteStaticPods())
	want := []files.File{{Path: rendered[0], Mode: 0o600, Content: []byte(rendered[0])}, {Path: rendered[1], Mode: 0o600, Content: []byte(rendered[1])}, {Path: rendered[2], Mode: 0o755, Content: []byte(rendered[2])}}
	fixture.Equal(t, "", want, fixture.Must(m.StaticPodFiles()))
	for _, f := range want {
		if info, err := os.Stat(m.Path(f.Path)); err != nil || info.Mode().Perm() != f.Mode {
			t.Errorf("%s: %v, %v", f.Path, info, err)
		}
	}
}

// The phase waits for an API server that does not answer, until its limit.
func TestWaitForAPI(t *testing.T) {
	m := &controlplane.Machine{Root: t.TempDir(), Rendered: "var/rendered", Interval: 10 * time.Millisecond}
	waited := func() string {
		var waiting []string
		err := phase.Run(t.Context(), []phase.Phase{{Name: "api", Limit: 200 * time.Millisecond, Run: m.WaitForAPI}}, phase.Options{Report: func(s phase.Status) {
			waiting = append(waiting, s.Phases[0].WaitingFor)
		}})
		fixture.Fails(t, "", err, phase.ErrLimit)
		return strings.Join(slices.Compact(waiting), "\n")
	}
	if got := waited(); !strings.Contains(got, "the API server: read the kubeconfig: ") {
		t.Errorf("waiting for %s", got)
	}
	fixture.Put(t, m.Root, m.Rendered+"/"+controlplane.Kubeconfig, `{"apiVersion": "v1", "kind": "Config", "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a"}}],
"clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}]}`)
	if got := waited(); !strings.Contains(got, "the API server: ") || !strings.Contains(got, "http://127.0.0.1:1/readyz") || !strings.Contains(got, "connection refused") {
		t.Errorf("waiting for %s", got)
	}
}
