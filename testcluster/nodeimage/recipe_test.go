// SPDX-License-Identifier: Apache-2.0

package nodeimage

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/testcluster/images"
)

func TestReadRecipe(t *testing.T) {
	r, err := readRecipe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.pulled() != "kindest/node:"+r.version || r.built() != "sno/node:"+r.version+"-"+r.key {
		t.Errorf("%+v", r)
	}
}

func TestRequired(t *testing.T) {
	text := []byte("module example.com/a\n\nrequire (\n\texample.com/b v1.2.3\n\texample.com/c v0.1.0 // indirect\n)\n")
	if got, err := required(text, "example.com/b"); err != nil || got != "v1.2.3" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := required(text, "example.com/d"); !errors.Is(err, ErrImage) {
		t.Error(err)
	}
}

func TestControlPlaneImage(t *testing.T) {
	for name, want := range map[string]images.Image{
		"registry.k8s.io/kube-apiserver:v1.2.3": {Files: map[string]string{"usr/local/bin/kube-apiserver": "/bin/kube-apiserver"}},
		"registry.k8s.io/kube-proxy:v1.2.3":     {Files: map[string]string{"usr/local/bin/kube-proxy": "/bin/kube-proxy"}, Tar: "/proxy.tar"},
		"registry.k8s.io/etcd:3.6.8-0":          {Files: map[string]string{"usr/local/bin/etcd": "/bin/etcd"}},
		"registry.k8s.io/coredns/coredns:v1.9":  {Files: map[string]string{"coredns": "/bin/coredns"}, Entrypoint: []string{"/coredns"}},
		"localhost:5000/pause:3.10":             {Files: map[string]string{"pause": "/pause"}, Entrypoint: []string{"/pause"}, User: images.NonRootUser},
	} {
		want.Name = name
		got, err := controlPlaneImage(name, "/bin", "/pause", "/proxy.tar")
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := controlPlaneImage("registry.k8s.io/new:1", "", "", ""); !errors.Is(err, ErrImage) {
		t.Error(err)
	}
}
