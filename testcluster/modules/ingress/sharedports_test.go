// SPDX-License-Identifier: Apache-2.0

package ingress_test

import (
	"slices"
	"testing"

	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/topology"
)

// R-SNO-2: an API server makes the ports of a router on the host network host ports, which keep old and new pod apart.
// It adds none to a router that shares its ports.
func TestSharedHostPortsOnAPIServer(t *testing.T) {
	c := newCluster(t, sr, sr)
	labels := map[string]string{"app": "router"}
	router := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ingress.RouterNamespace, Name: ingress.RouterName}}
	router.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	router.Spec.Template.Labels = labels
	router.Spec.Template.Spec = corev1.PodSpec{
		HostNetwork: true,
		Containers:  []corev1.Container{{Name: "router", Image: "router", Ports: []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 443}}}},
	}
	c.NoError(client.IgnoreAlreadyExists(c.Admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ingress.RouterNamespace}})))
	host, err := ingress.NewHost(topology.Cluster{ControlPlane: topology.ReadingOf(sr), Infrastructure: topology.ReadingOf(sr)}, "", &operatorv1.IngressController{})
	c.NoError(err)
	for _, test := range []struct {
		name string
		host ingress.Host
		want []int32
	}{
		{"today", host, []int32{80, 443}},
		{"shared", host.WithSharedHostPorts(), nil},
	} {
		shaped, err := ingress.ShapeRouter(router, test.host)
		c.NoError(err)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: shaped.Namespace, Name: test.name}, Spec: *shaped.Spec.Template.Spec.DeepCopy()}
		c.NoError(c.Admin.Create(t.Context(), shaped, client.DryRunAll))
		c.NoError(c.Admin.Create(t.Context(), pod, client.DryRunAll))
		if got := hostPorts(pod); !slices.Equal(got, test.want) {
			t.Errorf("%s: the pod has host ports %v, want %v", test.name, got, test.want)
		}
	}
}

func hostPorts(pod *corev1.Pod) []int32 {
	var ports []int32
	for _, port := range pod.Spec.Containers[0].Ports {
		ports = append(ports, port.HostPort)
	}
	return ports
}
