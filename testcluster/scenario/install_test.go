// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/eventually"
)

const testLimit = 2 * time.Minute

var shared struct {
	once    sync.Once
	cluster *embedded.Cluster
	err     error
}

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	code := m.Run()
	if shared.cluster != nil {
		if err := shared.cluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the shared cluster:", err)
			code = 1
		}
	}
	os.Exit(code)
}

func install(ctx context.Context, t *testing.T, name string) (Scenario, *embedded.Cluster) {
	t.Helper()
	shared.once.Do(func() {
		shared.cluster, shared.err = embedded.Start(context.Background(), embedded.Config{Progress: os.Stderr})
	})
	if shared.err != nil {
		t.Fatalf("these tests need a real API server: %v", shared.err)
	}
	s, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { uninstall(t, shared.cluster) })
	if err := s.Install(ctx, shared.cluster); err != nil {
		t.Fatal(err)
	}
	return s, shared.cluster
}

func uninstall(t *testing.T, c *embedded.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), testLimit)
	defer cancel()
	kube := c.Client()
	deletions := []error{
		kube.DeleteAllOf(ctx, &appsv1.Deployment{}, client.InNamespace(RouterNamespace), client.PropagationPolicy(metav1.DeletePropagationForeground)),
		kube.DeleteAllOf(ctx, &operatorv1.IngressController{}, client.InNamespace(OperatorNamespace)),
		kube.DeleteAllOf(ctx, &configv1.Infrastructure{}),
		kube.DeleteAllOf(ctx, &configv1.Ingress{}),
		kube.DeleteAllOf(ctx, &configv1.Scheduler{}),
		kube.DeleteAllOf(ctx, &configv1.ClusterVersion{}),
		kube.DeleteAllOf(ctx, &operatorv1.Console{}),
		kube.DeleteAllOf(ctx, &operatorv1.Authentication{}),
		kube.DeleteAllOf(ctx, &operatorv1.Etcd{}),
		kube.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(EtcdNamespace)),
		kube.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: EtcdNamespace, Name: "etcd-ca-bundle"}}),
		kube.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(ControlPlaneNamespace), client.GracePeriodSeconds(0)),
		kube.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(EtcdNamespace), client.GracePeriodSeconds(0)),
	}
	for _, err := range deletions {
		if err != nil {
			t.Fatalf("remove the scenario: %v", err)
		}
	}
	eventually.Succeeds(t, "the workloads are gone", func() error {
		var pods corev1.PodList
		var deployments appsv1.DeploymentList
		if err := kube.List(ctx, &pods); err != nil {
			return err
		}
		if err := kube.List(ctx, &deployments); err != nil {
			return err
		}
		if len(pods.Items)+len(deployments.Items) > 0 {
			return fmt.Errorf("%d pods and %d deployments are left", len(pods.Items), len(deployments.Items))
		}
		return nil
	})
	var nodes corev1.NodeList
	if err := kube.List(ctx, &nodes); err != nil {
		t.Fatalf("remove the nodes: %v", err)
	}
	for _, node := range nodes.Items {
		if err := c.DeleteNode(ctx, node.Name); err != nil {
			t.Fatalf("remove the nodes: %v", err)
		}
	}
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	t.Cleanup(cancel)
	return ctx
}

// Roles and taints of nodes.
const (
	masterAndWorker = "control-plane master worker"
	masterTainted   = "control-plane master node-role.kubernetes.io/master=:NoSchedule"
	onlyWorker      = "worker"
	onlyArbiter     = "arbiter node-role.kubernetes.io/arbiter=:NoSchedule"
)

func nodeShapes(ctx context.Context, t *testing.T, c *embedded.Cluster) map[string]string {
	t.Helper()
	var nodes corev1.NodeList
	if err := c.Client().List(ctx, &nodes); err != nil {
		t.Fatal(err)
	}
	shapes := map[string]string{}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if !embedded.NodeReady(node) {
			t.Errorf("node %s is not Ready", node.Name)
		}
		var shape []string
		for _, role := range []string{"arbiter", "control-plane", "infra", "master", "worker"} {
			if _, ok := node.Labels["node-role.kubernetes.io/"+role]; ok {
				shape = append(shape, role)
			}
		}
		for _, taint := range node.Spec.Taints {
			shape = append(shape, taint.Key+"="+taint.Value+":"+string(taint.Effect))
		}
		shapes[node.Name] = strings.Join(shape, " ")
	}
	return shapes
}

func TestInstall(t *testing.T) {
	const (
		single = "SingleReplica"
		ha     = "HighlyAvailable"
	)
	sno := map[string]string{"master-0": masterAndWorker}
	withOne := map[string]string{"master-0": masterTainted, "worker-0": onlyWorker}
	withTwo := map[string]string{"master-0": masterTainted, "worker-0": onlyWorker, "worker-1": onlyWorker}
	for _, test := range []struct {
		name                          string
		nodes                         map[string]string
		day2                          int
		platform, controlPlane, infra string
		placement, publishing         string
		mastersSchedulable            bool
		replicas                      int32
	}{
		{"none-sno", sno, 0, "None", single, single, "ControlPlane", "HostNetwork", true, 1},
		{"cloud-sno", sno, 0, "AWS", single, single, "Workers", "LoadBalancerService", true, 1},
		{"none-sno-day1-worker", withOne, 1, "None", single, single, "Workers", "HostNetwork", false, 1},
		{"cloud-sno-day1-worker", withOne, 1, "AWS", single, ha, "Workers", "LoadBalancerService", false, 2},
		{"none-sno-day1-workers", withTwo, 2, "None", single, single, "Workers", "HostNetwork", false, 1},
		{"cloud-sno-day1-workers", withTwo, 2, "AWS", single, ha, "Workers", "LoadBalancerService", false, 2},
		{"none-sno-day2-workers", sno, 2, "None", single, single, "Workers", "HostNetwork", true, 1},
		{"cloud-sno-day2-workers", sno, 2, "AWS", single, single, "Workers", "LoadBalancerService", true, 1},
		{"ha", map[string]string{
			"master-0": masterTainted, "master-1": masterTainted, "master-2": masterTainted, "worker-0": onlyWorker, "worker-1": onlyWorker,
		}, 0, "AWS", ha, ha, "Workers", "LoadBalancerService", false, 2},
		{"compact", map[string]string{
			"master-0": masterAndWorker, "master-1": masterAndWorker, "master-2": masterAndWorker,
		}, 0, "AWS", ha, ha, "Workers", "LoadBalancerService", true, 2},
		{"arbiter", map[string]string{
			"master-0": masterAndWorker, "master-1": masterAndWorker, "arbiter-0": onlyArbiter,
		}, 0, "BareMetal", "HighlyAvailableArbiter", ha, "Workers", "HostNetwork", true, 2},
		{"two-node", map[string]string{
			"master-0": masterAndWorker, "master-1": masterAndWorker,
		}, 0, "BareMetal", "DualReplica", ha, "Workers", "HostNetwork", true, 2},
		{"external", map[string]string{"worker-0": onlyWorker, "worker-1": onlyWorker}, 0, "AWS", "External", ha, "Workers", "", false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx := testContext(t)
			s, c := install(ctx, t, test.name)
			kube := c.Client()
			if diff := cmp.Diff(test.nodes, nodeShapes(ctx, t, c)); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
			key := client.ObjectKey{Name: "cluster"}
			var infrastructure configv1.Infrastructure
			var ingress configv1.Ingress
			var scheduler configv1.Scheduler
			for _, object := range []client.Object{&infrastructure, &ingress, &scheduler} {
				if err := kube.Get(ctx, key, object); err != nil {
					t.Fatal(err)
				}
			}
			status := infrastructure.Status
			if status.PlatformStatus == nil {
				t.Fatal("the Infrastructure has no status")
			}
			got := []string{
				string(infrastructure.Spec.PlatformSpec.Type), string(status.PlatformStatus.Type),
				string(status.ControlPlaneTopology), string(status.InfrastructureTopology), string(ingress.Status.DefaultPlacement),
				status.APIServerURL, ingress.Spec.Domain,
			}
			want := []string{
				test.platform, test.platform, test.controlPlane, test.infra, test.placement,
				"https://api.sno.example.com:6443", "apps.sno.example.com",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("objects of the installer (-want +got):\n%s", diff)
			}
			if scheduler.Spec.MastersSchedulable != test.mastersSchedulable {
				t.Errorf("masters schedulable: %v", scheduler.Spec.MastersSchedulable)
			}
			checkIngressController(ctx, t, kube, test.replicas, test.publishing)
			checkVersion(ctx, t, kube)
			if err := s.AddDay2Workers(ctx, c); err != nil {
				t.Fatal(err)
			}
			with := nodeShapes(ctx, t, c)
			if len(with) != len(test.nodes)+test.day2 {
				t.Errorf("%d nodes with day-2 workers, want %d more than %d", len(with), test.day2, len(test.nodes))
			}
			for i := range test.day2 {
				if diff := cmp.Diff(onlyWorker, with[fmt.Sprint("day2-worker-", i)]); diff != "" {
					t.Errorf("day-2 worker (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func checkVersion(ctx context.Context, t *testing.T, kube client.Client) {
	t.Helper()
	var version configv1.ClusterVersion
	if err := kube.Get(ctx, client.ObjectKey{Name: "version"}, &version); err != nil {
		t.Fatal(err)
	}
	status := version.Status
	if version.Spec.Channel != "stable-4.21" || status.Desired.Version != "4.21.3" || status.ObservedGeneration != version.Generation ||
		len(status.History) != 1 || status.History[0].State != configv1.CompletedUpdate || status.History[0].Version != "4.21.3" {
		t.Errorf("ClusterVersion with channel %q and status %+v", version.Spec.Channel, status)
	}
	for _, kind := range []string{"Console", "Authentication"} {
		operator := &unstructured.Unstructured{}
		operator.SetAPIVersion("operator.openshift.io/v1")
		operator.SetKind(kind)
		if err := kube.Get(ctx, client.ObjectKey{Name: "cluster"}, operator); err != nil {
			t.Fatal(err)
		}
		if state, _, _ := unstructured.NestedString(operator.Object, "spec", "managementState"); state != "Managed" {
			t.Errorf("%s has the spec %v", kind, operator.Object["spec"])
		}
		owned := operator.GetManagedFields()
		if len(owned) != 1 || owned[0].Manager != "cluster-version-operator" || string(owned[0].FieldsV1.Raw) != `{"f:spec":{".":{},"f:logLevel":{},"f:managementState":{},"f:operatorLogLevel":{}}}` {
			t.Errorf("%s: managed fields %v", kind, owned)
		}
	}
}

func checkIngressController(ctx context.Context, t *testing.T, kube client.Client, replicas int32, publishing string) {
	t.Helper()
	var controller operatorv1.IngressController
	err := kube.Get(ctx, client.ObjectKey{Namespace: "openshift-ingress-operator", Name: "default"}, &controller)
	if replicas == 0 {
		if !apierrors.IsNotFound(err) {
			t.Errorf("a default IngressController where there must be none: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if controller.Spec.Replicas == nil || *controller.Spec.Replicas != replicas || controller.Spec.NodePlacement != nil {
		t.Errorf("replicas %v and placement %v, want %d and none", controller.Spec.Replicas, controller.Spec.NodePlacement, replicas)
	}
	if strategy := controller.Status.EndpointPublishingStrategy; strategy == nil || string(strategy.Type) != publishing {
		t.Errorf("publishing strategy %v, want %s", strategy, publishing)
	}
	type writer struct{ Manager, Operation, Subresource string }
	var writers []writer
	for _, entry := range controller.ManagedFields {
		writers = append(writers, writer{entry.Manager, string(entry.Operation), entry.Subresource})
	}
	want := []writer{{"cluster-ingress-operator", "Update", ""}, {"cluster-ingress-operator", "Update", "status"}}
	if diff := cmp.Diff(want, writers); diff != "" {
		t.Errorf("managers of the default IngressController (-want +got):\n%s", diff)
	}
}
