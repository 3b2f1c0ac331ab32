// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"
)

func TestDefaulted(t *testing.T) {
	c, err := Config{}.defaulted()
	if err != nil || c.Name != DefaultName || c.ControlPlanes != 1 || c.Progress == nil {
		t.Errorf("%+v, %v", c, err)
	}
	for name, wrong := range map[string]Config{
		"two control planes": {ControlPlanes: 2}, "workers": {Workers: -1}, "name": {Name: "Not_a_host"}, "long": {Name: string(make([]byte, 50))},
	} {
		if _, err := wrong.defaulted(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestForKind(t *testing.T) {
	got, err := Config{
		Name: "a", ControlPlanes: 3, Workers: 1, Image: "image", Patches: []string{"more"},
		FeatureGates: map[string]bool{"Some": true},
	}.forKind()
	if err != nil {
		t.Fatal(err)
	}
	control := v1alpha4.Node{Role: v1alpha4.ControlPlaneRole, Image: "image"}
	want := []v1alpha4.Node{control, control, control, {Role: v1alpha4.WorkerRole, Image: "image"}}
	if diff := cmp.Diff(want, got.Nodes); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if !got.Networking.DisableDefaultCNI || got.FeatureGates["Some"] != true || len(got.KubeadmConfigPatches) != 3 || got.KubeadmConfigPatches[2] != "more" {
		t.Errorf("%+v", got)
	}
}

func TestKubelet(t *testing.T) {
	text, err := Config{ServerTLSBootstrap: true, KubeletConfig: map[string]any{"shutdownGracePeriod": "30s"}}.kubelet()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "failCgroupV1": false, "serverTLSBootstrap": true,
		"shutdownGracePeriod": "30s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPlain(t *testing.T) {
	if got := plain(" • Preparing nodes 📦 📦\x1b  ...\n"); got != "Preparing nodes    ..." {
		t.Errorf("%q", got)
	}
}
