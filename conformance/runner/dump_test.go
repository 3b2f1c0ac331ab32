// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/conformance/catalogue"
)

// TestWithoutSecrets covers kinds that the API server of TestSecrets does not serve.
func TestWithoutSecrets(t *testing.T) {
	secret := runtime.RawExtension{Raw: []byte(`{"a":"hunter2"}`)}
	spec := operatorv1.OperatorSpec{ObservedConfig: secret, UnsupportedConfigOverrides: secret}
	config := unstructured.Unstructured{Object: map[string]any{}}
	config.SetAnnotations(map[string]string{"example.com/token": "hunter2", "kubectl.kubernetes.io/restartedAt": "yesterday"})
	state := &catalogue.State{
		Console:          &operatorv1.Console{ObjectMeta: metav1.ObjectMeta{Name: "kept"}, Spec: operatorv1.ConsoleSpec{OperatorSpec: spec}},
		ApproverOperator: &configv1.ClusterOperator{Status: configv1.ClusterOperatorStatus{Extension: secret}},
		KubeletConfigs:   []unstructured.Unstructured{config},
	}
	objects, err := withoutSecrets(state)
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(objects)
	if err != nil || strings.Contains(string(text), "hunter2") {
		t.Errorf("%v, a secret is in:\n%s", err, text)
	}
	for _, part := range []string{"name: kept", "yesterday", withheld} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}
