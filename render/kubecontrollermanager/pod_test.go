// SPDX-License-Identifier: Apache-2.0

package kubecontrollermanager

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/observe"
)

func TestKnownFlags(t *testing.T) { fixture.CheckPodFlags(t, "kubernetes/pod.yaml") }

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
