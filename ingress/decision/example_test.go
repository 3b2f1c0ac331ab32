// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/ingress/decision"
	"github.com/solonode/sno/topology"
)

func singleNode() topology.Cluster {
	return topology.Cluster{
		ControlPlane:   topology.ReadingOf(configv1.SingleReplicaTopologyMode),
		Infrastructure: topology.ReadingOf(configv1.SingleReplicaTopologyMode),
		Platform:       configv1.NonePlatformType,
	}
}

func ExampleDecide() {
	cluster := singleNode()
	decided := decision.Decide(decision.Inputs{
		Cluster: &cluster,
		IngressController: &operatorv1.IngressController{
			ObjectMeta: metav1.ObjectMeta{Namespace: ingress.IngressControllerNamespace, Name: ingress.IngressControllerName},
		},
	}).IngressController
	spec, err := yaml.Marshal(specOf(decided))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(spec))
	// Output:
	// nodePlacement:
	//   nodeSelector:
	//     matchLabels:
	//       node-role.kubernetes.io/master: ""
	//   tolerations:
	//   - effect: NoSchedule
	//     key: node-role.kubernetes.io/master
	//     operator: Exists
	//   - effect: NoSchedule
	//     key: node-role.kubernetes.io/control-plane
	//     operator: Exists
	// replicas: 1
}
