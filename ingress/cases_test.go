// SPDX-License-Identifier: Apache-2.0

package ingress_test

import (
	operatorv1 "github.com/openshift/api/operator/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/ingress"
)

func liveIC(change ...func(*operatorv1.IngressController)) *operatorv1.IngressController {
	ic := &operatorv1.IngressController{ObjectMeta: metav1.ObjectMeta{
		Namespace: ingress.IngressControllerNamespace, Name: ingress.IngressControllerName,
	}}
	for _, f := range change {
		f(ic)
	}
	return ic
}
