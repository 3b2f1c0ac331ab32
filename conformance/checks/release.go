// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// firstWithTopologies is the first release whose authentication operator evaluates the topology.
const firstWithTopologies = "4.8.0"

// beforeTopologies returns false for unknown versions.
func beforeTopologies(release string) bool {
	v, err := version.ParseGeneric(release)
	return err == nil && v.LessThan(version.MustParseGeneric(firstWithTopologies))
}

func containsKey(text, key string) bool {
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return false
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		return false
	}
	_, ok := object[key]
	return ok
}

func writtenByVersion(d *appsv1.Deployment) {
	d.ManagedFields = append(d.ManagedFields, metav1.ManagedFieldsEntry{
		Manager: versionManager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1", FieldsType: "FieldsV1", Time: ptr.To(metav1.Now()),
		FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:replicas":{}}}`)},
	})
}
