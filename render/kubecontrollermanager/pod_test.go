// SPDX-License-Identifier: Apache-2.0

package kubecontrollermanager

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/observe"
	"github.com/solonode/sno/render/podtemplate"
)

func TestKnownFlags(t *testing.T) {
	var pod corev1.Pod
	if err := yaml.Unmarshal([]byte(fixture.ReadGolden(t, "kubernetes/pod.yaml")), &pod); err != nil {
		t.Fatal(err)
	}
	fixture.CheckFlags(t, pod.Spec.Containers[0].Command)
}

func TestImages(t *testing.T) {
	s := fixture.Settings(inputs.OpenShift, "192.168.2.1")
	s.Images = nil
	_, err := podFor(s, nil, observe.ClientConfig{})
	if !errors.Is(err, podtemplate.ErrMissingImage) || !strings.Contains(err.Error(), "tools") || !strings.Contains(err.Error(), "hyperkube") {
		t.Errorf("error %v", err)
	}
}

func TestProxy(t *testing.T) {
	s := fixture.Settings(inputs.OpenShift, "192.168.2.1")
	observed := observe.Nested(map[string]any{"HTTP_PROXY": "http://proxy"}, "targetconfigcontroller", "proxy")
	pod, err := podFor(s, nil, observe.ClientConfig{Observed: observed})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range pod.Spec.Containers {
		if !slices.Contains(c.Env, corev1.EnvVar{Name: "HTTP_PROXY", Value: "http://proxy"}) {
			t.Errorf("container %s has no proxy: %v", c.Name, c.Env)
		}
	}
}
