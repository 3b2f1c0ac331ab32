// SPDX-License-Identifier: Apache-2.0

// Command etcdguard makes the guards of etcd as an etcd operator does.
package main

import (
	"fmt"
	"log"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/topology"
)

func main() {
	cluster := topology.Cluster{
		ControlPlane:   topology.ReadingOf(configv1.HighlyAvailableTopologyMode),
		Infrastructure: topology.ReadingOf(configv1.HighlyAvailableTopologyMode),
	}
	host, err := etcdguard.NewHost(cluster, 3, "cli")
	if err != nil {
		log.Fatal(err)
	}
	nodes := []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "one", Labels: map[string]string{"node-role.kubernetes.io/master": ""}}}}
	pods, err := etcdguard.Pods(host, nodes)
	if err != nil {
		log.Fatal(err)
	}
	for _, pod := range pods {
		fmt.Println(pod.Name, pod.Spec.NodeName)
	}
	fmt.Println(etcdguard.SafeToRemove(cluster, nil, []etcdguard.Member{{ID: 1, Healthy: true}, {ID: 2, Healthy: true}, {ID: 3}}, 1))
}
