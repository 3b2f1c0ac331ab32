// SPDX-License-Identifier: Apache-2.0

// Command machineconfig decides on drains as a machine-config operator does.
package main

import (
	"fmt"
	"log"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/topology"
)

func main() {
	cluster := topology.Cluster{
		ControlPlane:   topology.ReadingOf(configv1.SingleReplicaTopologyMode),
		Infrastructure: topology.ReadingOf(configv1.SingleReplicaTopologyMode),
	}
	masters, arbiters, err := machineconfig.ExpectedControlPlaneNodes(cluster)
	if err != nil {
		log.Fatal(err)
	}
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one", Labels: map[string]string{"node-role.kubernetes.io/master": ""}}}
	drain, err := machineconfig.DrainRequired(machineconfig.Inputs{Cluster: &cluster, Nodes: []corev1.Node{node}, Node: "one"})
	if err != nil {
		log.Fatal(err)
	}
	start, waiting, err := machineconfig.MayStart(machineconfig.DrainState{Cluster: cluster, Nodes: []*corev1.Node{&node}, Pending: []string{"one"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(masters, arbiters, drain.Required, drain.Reason, start, len(waiting))
}
