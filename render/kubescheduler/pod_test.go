// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"errors"
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
	_, err := podFor(s, observe.ClientConfig{})
	if !errors.Is(err, podtemplate.ErrMissingImage) || !strings.Contains(err.Error(), "hyperkube, cluster-kube-scheduler-operator") {
		t.Errorf("error %v", err)
	}
}
