// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func poolOf(role, maxUnavailable string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	err := u.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfigPool","metadata":{"name":%q},
		"spec":{"maxUnavailable":%s,"nodeSelector":{"matchLabels":{"node-role.kubernetes.io/%s":""}}}}`, role, maxUnavailable, role))
	return u, err
}
