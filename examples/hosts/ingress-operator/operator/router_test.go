// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func hostNetwork() *operatorv1.EndpointPublishingStrategy {
	return &operatorv1.EndpointPublishingStrategy{Type: operatorv1.HostNetworkStrategyType}
}

func private() *operatorv1.EndpointPublishingStrategy {
	return &operatorv1.EndpointPublishingStrategy{Type: operatorv1.PrivateStrategyType}
}

func TestPorts(t *testing.T) {
	type port struct{ Container, Host int32 }
	for _, test := range []struct {
		name       string
		publishing *operatorv1.EndpointPublishingStrategy
		want       []port
	}{
		{"private", private(), []port{{80, 0}, {443, 0}, {1936, 0}}},
		{"load balancer", &operatorv1.EndpointPublishingStrategy{Type: operatorv1.LoadBalancerServiceStrategyType}, []port{{80, 0}, {443, 0}, {1936, 0}}},
		{"host network without ports", hostNetwork(), []port{{80, 80}, {443, 443}, {1936, 1936}}},
		{"host network with own ports", &operatorv1.EndpointPublishingStrategy{
			Type:        operatorv1.HostNetworkStrategyType,
			HostNetwork: &operatorv1.HostNetworkStrategy{HTTPPort: 8080, HTTPSPort: 8443},
		}, []port{{8080, 8080}, {8443, 8443}, {1936, 1936}}},
	} {
		var got []port
		for _, p := range ports(test.publishing) {
			got = append(got, port{p.ContainerPort, p.HostPort})
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// Values of every router of the stock operator (U-ING-9), and MinReadySeconds.
func TestStockRouter(t *testing.T) {
	for _, publishing := range []*operatorv1.EndpointPublishingStrategy{hostNetwork(), private()} {
		router := DefaultOptions().baseRouter(nil, "internal", publishing)
		pod := router.Spec.Template.Spec
		if router.Spec.MinReadySeconds != 30 || *pod.TerminationGracePeriodSeconds != 3600 || pod.PriorityClassName != "system-cluster-critical" {
			t.Errorf("%s: %d s ready, %d s of grace, class %s", publishing.Type, router.Spec.MinReadySeconds, *pod.TerminationGracePeriodSeconds, pod.PriorityClassName)
		}
		if got := (Options{MinReadySeconds: 1}).baseRouter(router, "internal", publishing).Spec.MinReadySeconds; got != 1 {
			t.Errorf("%s: %d s with --min-ready-seconds=1", publishing.Type, got)
		}
	}
}

func TestBaseRouterKeepsWhatItDoesNotDecide(t *testing.T) {
	live := DefaultOptions().baseRouter(nil, "internal", hostNetwork())
	live.Annotations = map[string]string{"deployment.kubernetes.io/revision": "3"}
	live.Labels["example.com/mine"] = "yes"
	live.Spec.Template.Spec.DNSPolicy = corev1.DNSClusterFirst
	live.Spec.Template.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
	want := live.DeepCopy()

	live.Spec.Template.Spec.NodeSelector = map[string]string{"left": "over"}
	live.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "left-over"}}
	live.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
	live.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: "left-over"}}
	serve(live, "another", true)
	live.Spec.Template.Spec.Containers = append(live.Spec.Template.Spec.Containers, corev1.Container{Name: "stowaway"})
	before := live.DeepCopy()

	if diff := cmp.Diff(want, DefaultOptions().baseRouter(live, "internal", hostNetwork())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, live); diff != "" {
		t.Errorf("the live router was changed (-before +after):\n%s", diff)
	}
}

func TestServe(t *testing.T) {
	router := DefaultOptions().baseRouter(nil, "internal", hostNetwork())
	serve(router, "example.com/router:1", false)
	container := router.Spec.Template.Spec.Containers[0]
	if container.Image != "example.com/router:1" || container.ReadinessProbe.HTTPGet.Port.IntVal != 1936 || container.Env != nil {
		t.Errorf("%+v", container)
	}
	if diff := cmp.Diff(DefaultOptions().baseRouter(nil, "internal", hostNetwork()).Spec.Template.Spec.Containers[0].Ports, container.Ports); diff != "" {
		t.Error(diff)
	}
}

// The hash is of the router that the module has shaped. Computed before, it is the same on the control plane and on the
// workers.
func TestSealComesLast(t *testing.T) {
	hashes := func(sealFirst bool) (workers, controlPlane string) {
		of := func(placement *operatorv1.NodePlacement) string {
			base := DefaultOptions().baseRouter(nil, "default", hostNetwork())
			if sealFirst {
				if err := seal(base); err != nil {
					t.Fatal(err)
				}
			}
			router, _, err := vendoredRules(false).shape(base, inputs{cluster: cluster(sr, sr), ic: ingressController(nil, placement)})
			if err != nil {
				t.Fatal(err)
			}
			if !sealFirst {
				if err := seal(router); err != nil {
					t.Fatal(err)
				}
			}
			return router.Spec.Template.Labels[hashLabel]
		}
		return of(nil), of(pinned())
	}
	if workers, controlPlane := hashes(false); workers == controlPlane || workers == "" {
		t.Errorf("sealed after the module, a router on the workers has hash %q, one on the control plane %q", workers, controlPlane)
	}
	if workers, controlPlane := hashes(true); workers != controlPlane {
		t.Errorf("sealed before the module, the hashes %q and %q differ: then the order does not matter", workers, controlPlane)
	}
}

// The hash does not include defaults of the API server. Otherwise each router would be rolled out once after its
// creation.
func TestSealIgnoresDefaults(t *testing.T) {
	created, live := DefaultOptions().baseRouter(nil, "default", hostNetwork()), DefaultOptions().baseRouter(nil, "default", hostNetwork())
	live.Spec.Template.Spec.TerminationGracePeriodSeconds, live.Spec.Template.Spec.DNSPolicy = ptr.To[int64](30), corev1.DNSClusterFirst
	live.Spec.Template.Spec.Containers[0].ImagePullPolicy = corev1.PullIfNotPresent
	live.Spec.Template.Labels[hashLabel] = "older"
	for _, router := range []*appsv1.Deployment{created, live} {
		if err := seal(router); err != nil {
			t.Fatal(err)
		}
	}
	if created.Spec.Template.Labels[hashLabel] != live.Spec.Template.Labels[hashLabel] {
		t.Errorf("hashes %q and %q", created.Spec.Template.Labels[hashLabel], live.Spec.Template.Labels[hashLabel])
	}
}

// A router that leaves the host network releases the ports too.
func TestBaseRouterFollowsPublishing(t *testing.T) {
	router := DefaultOptions().baseRouter(DefaultOptions().baseRouter(nil, "internal", hostNetwork()), "internal", private())
	if diff := cmp.Diff(DefaultOptions().baseRouter(nil, "internal", private()), router); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEffectivePublishing(t *testing.T) {
	own := &operatorv1.EndpointPublishingStrategy{Type: operatorv1.NodePortServiceStrategyType}
	for _, test := range []struct {
		name         string
		spec, status *operatorv1.EndpointPublishingStrategy
		platform     configv1.PlatformType
		want         operatorv1.EndpointPublishingStrategyType
	}{
		{"status wins", own, private(), configv1.AWSPlatformType, operatorv1.PrivateStrategyType},
		{"spec before the platform", own, nil, configv1.AWSPlatformType, operatorv1.NodePortServiceStrategyType},
		{"cloud", nil, nil, configv1.AWSPlatformType, operatorv1.LoadBalancerServiceStrategyType},
		{"none", nil, nil, configv1.NonePlatformType, operatorv1.HostNetworkStrategyType},
		{"bare metal", nil, nil, configv1.BareMetalPlatformType, operatorv1.HostNetworkStrategyType},
		{"unknown", nil, nil, "Moon", operatorv1.HostNetworkStrategyType},
		{"empty", nil, nil, "", operatorv1.HostNetworkStrategyType},
	} {
		ic := &operatorv1.IngressController{
			Spec:   operatorv1.IngressControllerSpec{EndpointPublishingStrategy: test.spec},
			Status: operatorv1.IngressControllerStatus{EndpointPublishingStrategy: test.status},
		}
		if got := effectivePublishing(ic, test.platform).Type; got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// The readiness of a router that shares its ports is checked inside of its pod. A router that no longer shares them has
// no rest of that.
func TestServeSharedPorts(t *testing.T) {
	options := DefaultOptions()
	router := options.baseRouter(nil, "default", hostNetwork())
	serve(router, "example.com/router:1", true)
	shaped, _, err := vendoredRules(true).shape(router, inputs{cluster: cluster(sr, sr), ic: ingressController(nil, pinned())})
	if err != nil {
		t.Fatal(err)
	}
	container := shaped.Spec.Template.Spec.Containers[0]
	if container.Ports != nil || container.ReadinessProbe.HTTPGet != nil || container.ReadinessProbe.Exec == nil || len(container.Env) != 1 {
		t.Errorf("%+v", container)
	}
	if _, _, err := vendoredRules(true).shape(options.baseRouter(nil, "default", hostNetwork()), inputs{
		cluster: cluster(sr, sr), ic: ingressController(nil, pinned()),
	}); err != nil {
		t.Errorf("without an image: %v", err)
	}
	if diff := cmp.Diff(options.baseRouter(nil, "default", hostNetwork()), options.baseRouter(shaped, "default", hostNetwork()),
		cmpopts.IgnoreFields(appsv1.DeploymentSpec{}, "Replicas", "Strategy")); diff != "" {
		t.Errorf("the base of a live router that shared its ports (-want +got):\n%s", diff)
	}
}
