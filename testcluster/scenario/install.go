// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/embedded"
)

// Namespaces, field managers and singletons of a cluster, and its versions.
const (
	OperatorNamespace = "openshift-ingress-operator"
	RouterNamespace   = "openshift-ingress"
	CanaryNamespace   = "openshift-ingress-canary"
	EtcdNamespace     = "openshift-etcd"
	// ControlPlaneNamespace holds a pod for the static pods of each control-plane node.
	ControlPlaneNamespace = "openshift-kube-apiserver"

	InstallerManager       = "cluster-bootstrap"
	StockOperatorManager   = "cluster-ingress-operator"
	VersionOperatorManager = "cluster-version-operator"

	// ClusterName is the name of the singletons of group config.openshift.io.
	ClusterName              = "cluster"
	DefaultIngressController = "default"
	ClusterVersionName       = "version"
	Release                  = "4.21.3" // of a Scenario that sets none
	// OldRelease is a version without topologies: downloads comes from a static manifest, and the authentication
	// operator waits for three control-plane nodes.
	OldRelease = "4.7.13"

	baseDomain = "sno.example.com"
)

// Install gives an empty embedded cluster the state right after the scenario's installation, without day-2 workers:
// nodes, namespaces, objects of the installer, and IngressController/default as the stock ingress operator created
// it, but without the operator's finalizer, which is written later and needs the operator for its removal.
func (s Scenario) Install(ctx context.Context, c *embedded.Cluster) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := s.installNodes(groupCtx, c); err != nil {
			return fmt.Errorf("install scenario %s: %w", s.Name, err)
		}
		return nil
	})
	group.Go(func() error { return s.InstallObjects(groupCtx, c) })
	return group.Wait() //nolint:wrapcheck // the errors are complete
}

// InstallObjects is Install without the nodes: for a cluster whose nodes are real.
func (s Scenario) InstallObjects(ctx context.Context, c *embedded.Cluster) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.installObjects(groupCtx, c.Client()) })
	group.Go(func() error {
		if err := c.EnsureNamespace(groupCtx, EtcdNamespace); err != nil {
			return err
		}
		return installEtcdCertificates(groupCtx, c.Client())
	})
	group.Go(func() error { return s.InstallOperators(groupCtx, c) })
	if err := group.Wait(); err != nil {
		return fmt.Errorf("install scenario %s: %w", s.Name, err)
	}
	return nil
}

// InstallOperators is InstallObjects without the objects of the installer: for a cluster that an installer has
// installed.
func (s Scenario) InstallOperators(ctx context.Context, c *embedded.Cluster) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := c.EnsureNamespace(groupCtx, OperatorNamespace); err != nil {
			return err
		}
		return s.installIngressController(groupCtx, c.Client())
	})
	group.Go(func() error { return s.installVersion(groupCtx, c.Client()) })
	for _, namespace := range []string{
		RouterNamespace, CanaryNamespace, ConsoleNamespace, ConsoleOperatorNamespace, OAuthServerNamespace, OAuthAPIServerNamespace,
		AuthenticationOperatorNamespace, VersionOperatorNamespace,
	} {
		group.Go(func() error { return c.EnsureNamespace(groupCtx, namespace) })
	}
	return group.Wait() //nolint:wrapcheck // the errors are complete
}

func (s Scenario) installNodes(ctx context.Context, c *embedded.Cluster) error {
	if err := c.AddNodes(ctx, s.Nodes()...); err != nil {
		return err
	}
	if err := c.EnsureNamespace(ctx, ControlPlaneNamespace); err != nil {
		return err
	}
	for _, master := range s.Nodes()[:s.Masters] {
		if err := c.Client().Create(ctx, controlPlanePod(master.Name)); err != nil {
			return fmt.Errorf("create the control plane's pod: %w", err)
		}
	}
	if s.ControlPlaneTopology == configv1.ExternalTopologyMode {
		return nil
	}
	if err := c.EnsureNamespace(ctx, EtcdNamespace); err != nil {
		return err
	}
	for _, member := range s.Nodes()[:s.Masters+s.Arbiters] {
		if err := c.Client().Create(ctx, EtcdPod(member.Name)); err != nil {
			return fmt.Errorf("create the pod of etcd: %w", err)
		}
	}
	return nil
}

func (s Scenario) installObjects(ctx context.Context, kube client.Client) error {
	infrastructure := &configv1.Infrastructure{
		ObjectMeta: metav1.ObjectMeta{Name: ClusterName},
		Spec:       configv1.InfrastructureSpec{PlatformSpec: configv1.PlatformSpec{Type: s.Platform}},
	}
	err := createWithStatus(ctx, kube, infrastructure, InstallerManager, func() {
		infrastructure.Status = configv1.InfrastructureStatus{
			InfrastructureName:     "sno-" + s.Name,
			Platform:               s.Platform, // deprecated, but installers write it
			PlatformStatus:         s.platformStatus(),
			APIServerURL:           "https://api." + baseDomain + ":6443",
			APIServerInternalURL:   "https://api-int." + baseDomain + ":6443",
			ControlPlaneTopology:   s.ControlPlaneTopology,
			InfrastructureTopology: s.InfrastructureTopology,
			CPUPartitioning:        configv1.CPUPartitioningNone,
		}
	})
	if err != nil {
		return err
	}
	ingress := &configv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Name: ClusterName},
		Spec:       configv1.IngressSpec{Domain: "apps." + baseDomain},
	}
	err = createWithStatus(ctx, kube, ingress, InstallerManager, func() { ingress.Status.DefaultPlacement = s.DefaultPlacement })
	if err != nil {
		return err
	}
	scheduler := &configv1.Scheduler{
		ObjectMeta: metav1.ObjectMeta{Name: ClusterName},
		Spec:       configv1.SchedulerSpec{MastersSchedulable: s.MastersSchedulable},
	}
	if err := kube.Create(ctx, scheduler, client.FieldOwner(InstallerManager)); err != nil {
		return fmt.Errorf("create Scheduler/%s: %w", ClusterName, err)
	}
	return nil
}

// installVersion writes the ClusterVersion, its spec as an installer and its status as the cluster-version-operator
// that has installed the release, and the objects that the latter creates for the console and authentication operators.
func (s Scenario) installVersion(ctx context.Context, kube client.Client) error {
	release := s.Release
	if release == "" {
		release = Release
	}
	image := "registry.invalid/release:" + release
	version := &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: ClusterVersionName},
		Spec: configv1.ClusterVersionSpec{
			ClusterID: "00000000-0000-4000-8000-000000000000",
			Channel:   "stable-" + release[:strings.LastIndex(release, ".")],
		},
	}
	if err := kube.Create(ctx, version, client.FieldOwner(InstallerManager)); err != nil {
		return fmt.Errorf("create ClusterVersion/%s: %w", ClusterVersionName, err)
	}
	now := metav1.Now()
	version.Status = configv1.ClusterVersionStatus{
		Desired: configv1.Release{Version: release, Image: image},
		History: []configv1.UpdateHistory{{
			State: configv1.CompletedUpdate, Version: release, Image: image, StartedTime: now, CompletionTime: &now,
		}},
		ObservedGeneration: version.Generation,
		VersionHash:        "none",
		Conditions: []configv1.ClusterOperatorStatusCondition{
			{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue, LastTransitionTime: now, Message: "Done applying " + release},
			{Type: configv1.OperatorProgressing, Status: configv1.ConditionFalse, LastTransitionTime: now, Message: "Cluster version is " + release},
		},
	}
	if err := kube.Status().Update(ctx, version, client.FieldOwner(VersionOperatorManager)); err != nil {
		return fmt.Errorf("write the status of ClusterVersion/%s: %w", ClusterVersionName, err)
	}
	for _, kind := range []string{"Console", "Authentication", "Etcd"} {
		// Only the manifest's fields: the typed object would also set and own null values.
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"managementState": string(operatorv1.Managed)}}}
		object.SetGroupVersionKind(operatorv1.GroupVersion.WithKind(kind))
		object.SetName(ClusterName)
		if err := kube.Create(ctx, object, client.FieldOwner(VersionOperatorManager)); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create %s/%s: %w", kind, ClusterName, err)
		}
	}
	return nil
}

// installEtcdCertificates creates the objects of etcd's clients. Their content is not used for etcd without TLS.
func installEtcdCertificates(ctx context.Context, kube client.Client) error {
	for _, object := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: EtcdNamespace, Name: "etcd-client"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: EtcdNamespace, Name: "etcd-ca-bundle"}},
	} {
		if err := kube.Create(ctx, object, client.FieldOwner(InstallerManager)); err != nil {
			return fmt.Errorf("create %s: %w", object.GetName(), err)
		}
	}
	return nil
}

func (s Scenario) platformStatus() *configv1.PlatformStatus {
	status := &configv1.PlatformStatus{Type: s.Platform}
	if s.Platform == configv1.AWSPlatformType {
		status.AWS = &configv1.AWSPlatformStatus{Region: "us-east-1"}
	}
	return status
}

// installIngressController writes what the stock ingress operator writes when there is no IngressController/default:
// the replicas, which it never changes later, and its status.
func (s Scenario) installIngressController(ctx context.Context, kube client.Client) error {
	if s.StockReplicas == 0 {
		return nil
	}
	controller := &operatorv1.IngressController{
		ObjectMeta: metav1.ObjectMeta{Namespace: OperatorNamespace, Name: DefaultIngressController},
		Spec:       operatorv1.IngressControllerSpec{Replicas: ptr.To(s.StockReplicas)},
	}
	return createWithStatus(ctx, kube, controller, StockOperatorManager, func() {
		controller.Status = operatorv1.IngressControllerStatus{
			Domain:                     "apps." + baseDomain,
			Selector:                   "ingresscontroller.operator.openshift.io/deployment-ingresscontroller=" + DefaultIngressController,
			EndpointPublishingStrategy: s.publishingStrategy(),
		}
	})
}

// publishingStrategy is the stock operator's default: a load balancer where the platform has one, the host network
// elsewhere.
func (s Scenario) publishingStrategy() *operatorv1.EndpointPublishingStrategy {
	if s.Platform == configv1.AWSPlatformType {
		return &operatorv1.EndpointPublishingStrategy{
			Type: operatorv1.LoadBalancerServiceStrategyType,
			LoadBalancer: &operatorv1.LoadBalancerStrategy{
				Scope: operatorv1.ExternalLoadBalancer, DNSManagementPolicy: operatorv1.ManagedLoadBalancerDNS,
			},
		}
	}
	return &operatorv1.EndpointPublishingStrategy{
		Type: operatorv1.HostNetworkStrategyType,
		HostNetwork: &operatorv1.HostNetworkStrategy{
			Protocol: operatorv1.TCPProtocol, HTTPPort: 80, HTTPSPort: 443, StatsPort: 1936,
		},
	}
}

// createWithStatus creates an object and then writes its status, which a create drops, through the subresource. It
// calls setStatus in between, because the response of the create replaces the object.
func createWithStatus(ctx context.Context, kube client.Client, object client.Object, manager string, setStatus func()) error {
	kind := fmt.Sprintf("%T %s", object, object.GetName())
	if err := kube.Create(ctx, object, client.FieldOwner(manager)); err != nil {
		return fmt.Errorf("create %s: %w", kind, err)
	}
	setStatus()
	if err := kube.Status().Update(ctx, object, client.FieldOwner(manager)); err != nil {
		return fmt.Errorf("write the status of %s: %w", kind, err)
	}
	return nil
}
