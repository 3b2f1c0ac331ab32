// SPDX-License-Identifier: Apache-2.0

package postreboot

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/node"
)

// An operator has taken over when it is stable on this node, and its pod of the same revision is Ready. The revision of
// the bootstrap phase may remain (R-BIP-16, R-BIP-17).
func TestOperators(t *testing.T) {
	m := newMachine(t, "openshift")
	m.takenOver()
	apiserver := staticPods[1]
	for name, test := range map[string]struct {
		state state
		pod   string
		ready corev1.ConditionStatus
		want  string
	}{
		"steady":             {steady, "4", "True", ""},
		"bootstrap revision": {state{"True", "False", "False", host, 1, 1}, "1", "True", ""},
		"no Degraded":        {state{"True", "False", "", host, 4, 4}, "4", "True", ""},
		"unavailable":        {state{"False", "False", "False", host, 4, 4}, "4", "True", "it is not available: Available for a reason"},
		"no conditions":      {state{"", "", "", host, 4, 4}, "4", "True", "it is not available"},
		"progressing":        {state{"True", "True", "False", host, 4, 4}, "4", "True", "it is progressing: Progressing for a reason"},
		"no Progressing":     {state{"True", "", "False", host, 4, 4}, "4", "True", "it is progressing"},
		"degraded":           {state{"True", "False", "True", host, 4, 4}, "4", "True", "it is degraded: Degraded for a reason"},
		"later revision":     {state{"True", "False", "False", host, 4, 5}, "4", "True", "the node has revision 4, the latest is 5"},
		"no revision":        {state{"True", "False", "False", host, 0, 0}, "0", "True", "the node has revision 0, the latest is 0"},
		"another node":       {state{"True", "False", "False", "worker0", 4, 4}, "4", "True", "the node has revision 0, the latest is 4"},
		"bootstrap pod":      {steady, "1", "True", `the pod has revision "1", not 4`},
		"pod is not Ready":   {steady, "4", "False", "the pod is not Ready"},
	} {
		t.Run(name, func(t *testing.T) {
			m.T = t
			now := int64(0)
			m.must(m.CoreV1().Pods(apiserver.namespace).Delete(t.Context(), apiserver.name+"-"+host, metav1.DeleteOptions{GracePeriodSeconds: &now}))
			m.report(apiserver, test.state)
			m.pod(apiserver, test.pod, test.ready)
			err := controlPlane{m, &node.Settings{Profile: "openshift", Name: host}}.ready(t.Context())
			switch {
			case test.want == "" && err != nil, test.want != "" && err == nil:
				t.Errorf("error %v, want %q", err, test.want)
			case err != nil && !strings.HasPrefix(err.Error(), "not ready: kube-apiserver: "+test.want):
				t.Errorf("error %v, want %q for kube-apiserver only", err, test.want)
			}
		})
	}
}

// Without operators the phase waits for the four pods only.
func TestWithoutOperators(t *testing.T) {
	m := newMachine(t, "kubernetes")
	err := m.run(Phases(m.options())[3:4],
		step{"kube-scheduler: pods", func() {
			for _, s := range staticPods {
				m.pod(s, "1", corev1.ConditionFalse)
			}
		}},
		step{"etcd: the pod is not Ready; kube-apiserver: the pod is not Ready", func() {
			for _, s := range staticPods {
				m.pod(s, "1", corev1.ConditionTrue)
			}
		}})
	if err != nil {
		t.Error(err)
	}
}

// The names, and the label with the revision, are those of sno-render's pods.
func TestNamesOfPods(t *testing.T) {
	for i, file := range []string{
		"etcd/testdata/openshift/one-pod.yaml", "kubeapiserver/testdata/one-node-openshift/pod.yaml",
		"kubecontrollermanager/testdata/openshift/pod.yaml", "kubescheduler/testdata/openshift/pod.yaml",
	} {
		text := fixture.Must(os.ReadFile("../../render/" + file))
		var pod corev1.Pod
		fixture.NoError(t, yaml.Unmarshal(text, &pod))
		if s := staticPods[i]; pod.Name != s.name || pod.Namespace != s.namespace || pod.Labels["revision"] != "REVISION" {
			t.Errorf("%s has the pod %s/%s with the labels %v", file, pod.Namespace, pod.Name, pod.Labels)
		}
	}
}
