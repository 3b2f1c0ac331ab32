// SPDX-License-Identifier: Apache-2.0

package allinone_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/solonode/sno/install/allinone"
	"github.com/solonode/sno/install/controlplane"
	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/kubelet"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

func kubeletHealth(t *testing.T, asked *[]string) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		// A kubelet that starts becomes healthy later.
		if len(*asked) == 0 || (*asked)[len(*asked)-1] != "not healthy" {
			*asked = append(*asked, "not healthy")
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		*asked = append(*asked, "healthy")
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// The kubelet is restarted when its kubeconfig or its bundle has changed, with or without reports of static pods. An
// interrupted run continues.
func TestUpdateAccess(t *testing.T) {
	root := t.TempDir()
	errSystem := errors.New("no such unit")
	m := allinone.NewMachine(controlplane.Machine{Root: root, Output: io.Discard, Interval: 20 * time.Millisecond, Systemctl: func(context.Context, ...string) error {
		return errSystem
	}})
	fixture.Put(t, root, node.AllInOneRendered+"/"+controlplane.KubeletKubeconfig, kubeletKubeconfig)
	fixture.Put(t, root, node.AllInOneRendered+"/"+controlplane.Kubeconfig, strings.ReplaceAll(kubeletKubeconfig, `"certificate-authority-data": "YSBidW5kbGU="`, `"insecure-skip-tls-verify": true`))
	fixture.Put(t, root, node.AllInOneRendered+"/files/"+node.ManifestDir+"/etcd-pod.yaml", `{"metadata": {"name": "etcd", "namespace": "openshift-etcd"}}`)
	fixture.Put(t, root, node.AllInOneSettings, "profile: kubernetes\nname: master0\n")
	var asked []string
	health := kubeletHealth(t, &asked)
	update := func() error {
		all := allinone.Rotate(m, allinone.Kubelet{HealthURL: health, PodTimeout: 100 * time.Millisecond})
		i := slices.IndexFunc(all, func(p phase.Phase) bool { return p.Name == "kubelet" })
		return phase.Run(t.Context(), all[i:i+1], phase.Options{})
	}
	fixture.Fails(t, "", update(), errSystem)
	if _, err := os.Stat(m.Path(kubelet.ServerCA)); err == nil {
		t.Error("a kubelet that was not stopped has another bundle on its disk")
	}
	m.Systemctl = func(_ context.Context, arguments ...string) error {
		asked = append(asked, strings.Join(arguments, " "))
		return nil
	}
	for _, step := range []struct {
		what string
		do   func()
		want []string
	}{
		{"first", func() {}, []string{"stop kubelet.service", "start kubelet.service", "not healthy", "healthy"}},
		{"again", func() {}, []string{"start kubelet.service", "not healthy", "healthy"}},
		{"other bundle", func() { fixture.Put(t, root, kubelet.ServerCA, "other") }, []string{"stop kubelet.service", "start kubelet.service", "not healthy", "healthy"}},
		{"other kubeconfig", func() { fixture.Put(t, root, node.KubeletBootstrap, "other") }, []string{"stop kubelet.service", "start kubelet.service", "not healthy", "healthy"}},
	} {
		step.do()
		asked = nil
		if err := update(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		fixture.Equal(t, step.what, step.want, asked)
		if ca, err := os.ReadFile(m.Path(kubelet.ServerCA)); err != nil || string(ca) != "a bundle" {
			t.Errorf("%s: %s, %v", step.what, ca, err)
		}
	}
}

// The kubelet starts when it finds its kubeconfig, so its name, addresses and static pods are written first (R-AIO-5).
func TestKubeconfigIsLast(t *testing.T) {
	root := t.TempDir()
	fixture.Put(t, root, node.AllInOneSettings, "profile: kubernetes\nclusterName: sno\nbaseDomain: example.com\nvalidity: 1h\ncreated: \"2026-11-25T08:00:00Z\"\nname: master0\naddresses: [192.0.2.10]\n")
	fixture.Put(t, root, node.AllInOneRendered+"/sno-render.yaml", "")
	fixture.Put(t, root, node.AllInOneRendered+"/"+controlplane.KubeletKubeconfig, kubeletKubeconfig)
	fixture.Put(t, root, node.AllInOneRendered+"/files/"+node.ManifestDir+"/etcd-pod.yaml", "a pod")
	m := allinone.NewMachine(controlplane.Machine{Root: root, Output: io.Discard, Interval: 20 * time.Millisecond})
	run := func() error {
		for _, p := range allinone.Phases(m, hasAll) {
			if p.Name == "static-pods" {
				return phase.Run(t.Context(), []phase.Phase{p}, phase.Options{})
			}
		}
		return errors.New("there is no phase static-pods")
	}
	for _, inTheWay := range []string{node.ManifestDir + "/etcd-pod.yaml", "etc/kubernetes/kubelet.env", kubelet.ServerCA} {
		fixture.NoError(t, errors.Join(os.RemoveAll(m.Path(inTheWay)), os.MkdirAll(m.Path(inTheWay+"/folder"), 0o700)))
		if err := run(); err == nil {
			t.Errorf("no error with a folder at the path of %s", inTheWay)
		}
		fixture.Absent(t, m.Path(node.KubeletBootstrap))
		fixture.NoError(t, os.RemoveAll(m.Path(inTheWay)))
	}
	fixture.NoError(t, run())
	config, err := clientcmd.LoadFromFile(m.Path(node.KubeletBootstrap))
	if err != nil || config.Clusters["a"].CertificateAuthority != "/"+kubelet.ServerCA {
		t.Errorf("%+v, %v", config, err)
	}
	if ca, err := os.ReadFile(m.Path(kubelet.ServerCA)); err != nil || string(ca) != "a bundle" {
		t.Errorf("%s, %v", ca, err)
	}
}

// hasAll is the check of an image that has everything.
func hasAll(context.Context, *node.Settings) error { return nil }

const kubeletKubeconfig = `{"apiVersion": "v1", "kind": "Config", "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a"}}],
	"clusters": [{"name": "a", "cluster": {"server": "https://localhost:6443", "certificate-authority-data": "YSBidW5kbGU="}}]}`

// Settings that cannot be read are an input error, and are not retried until the limit.
func TestInput(t *testing.T) {
	root := t.TempDir()
	m := allinone.NewMachine(controlplane.Machine{Root: root, Output: io.Discard, Interval: 20 * time.Millisecond})
	kubeconfig := `{"apiVersion": "v1", "kind": "Config", "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a"}}], "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}]}`
	fixture.Put(t, root, node.AllInOneRendered+"/"+controlplane.Kubeconfig, kubeconfig)
	for _, text := range []string{"profile: [", "profile: kubernetes\nnew: field\n", "profile: kubernetes\ncreated: today\n"} {
		fixture.Put(t, root, node.AllInOneSettings, text)
		for _, p := range allinone.Phases(m, hasAll) {
			if p.Name != "join" {
				continue
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			if err := phase.Run(ctx, []phase.Phase{p}, phase.Options{}); phase.ExitCode(err) != phase.ExitInput {
				t.Errorf("%q: phase %s: %v", text, p.Name, err)
			}
		}
	}
}
