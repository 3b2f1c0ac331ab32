package ingress

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/topology"
)

var (
	// ErrHost is returned for a Host that NewHost did not make.
	ErrHost = errors.New("empty Host: make it with NewHost")
	// ErrNoIngressController is returned where there is no IngressController whose router could be shaped.
	ErrNoIngressController = errors.New("no IngressController: pass the one whose router is shaped")
	// ErrNoTopology is returned for a Cluster that was not read from an Infrastructure object, such as the zero Cluster.
	ErrNoTopology = topology.ErrClusterNotRead
	// ErrNodeSelector is returned for a spec.nodePlacement.nodeSelector that is no map of labels, as one with the operator Exists or with
	// several values. The stock operator does not accept it either.
	ErrNodeSelector = errors.New("the node selector in spec.nodePlacement is not a map of labels; use matchLabels, or the operator In with one value")
)

// Host is what an ingress operator knows about the router that it is about to shape. NewHost makes one; every function that takes a
// Host returns ErrHost for the zero value.
type Host struct {
	cluster topology.Cluster
	pool    topology.Pool
	// mode is the topology that governs the pool. It is empty in the zero Host only.
	mode configv1.TopologyMode
	name string
	// replicas is nil where the IngressController says nothing.
	replicas *int32
	// selector is the IngressController's own: nil when it has none, empty when it selects every node.
	selector map[string]string
	// tolerations are the IngressController's own: nil when it has none, empty when it wants none.
	tolerations []corev1.Toleration
	// hostNetwork means that the routers bind ports of their nodes.
	hostNetwork bool
}

// NewHost reads what matters about a router: the cluster, as topology.FromInfrastructure read it, status.defaultPlacement of
// ingresses.config.openshift.io/cluster, which places a router whose IngressController says nothing, and the IngressController, with
// the publishing strategy that is in effect in its status. The IngressController is only read, and later changes to it do not reach the Host.
//
// Errors: ErrNoTopology, ErrNoIngressController, and ErrNodeSelector, with the IngressController's name, for a node selector that the stock
// operator refuses as well.
func NewHost(cluster topology.Cluster, defaultPlacement configv1.DefaultPlacement, ic *operatorv1.IngressController) (Host, error) {
	if err := cluster.Validate(); err != nil {
		return Host{}, err
	}
	if ic == nil {
		return Host{}, ErrNoIngressController
	}
	selector, err := nodeSelector(ic.Spec.NodePlacement)
	if err != nil {
		return Host{}, fmt.Errorf("IngressController %s/%s: %w", ic.Namespace, ic.Name, err)
	}
	pool := cluster.PoolFor(poolOf(selector, defaultPlacement))
	host := Host{
		cluster: cluster, pool: pool, mode: cluster.Governing(pool),
		name: ic.Name, selector: selector, hostNetwork: usesHostNetwork(cluster, ic),
	}
	if ic.Spec.Replicas != nil {
		host.replicas = ptr.To(*ic.Spec.Replicas)
	}
	if custom := ic.Spec.NodePlacement; custom != nil && custom.Tolerations != nil {
		host.tolerations = custom.DeepCopy().Tolerations
	}
	return host, nil
}

// Pool is where the router's pods will run: what the IngressController selects, or else the cluster's default placement. Every selector
// without a label of the control plane's, such as one for infra nodes, is the workers'.
func (h Host) Pool() (topology.Pool, error) {
	if err := h.made(); err != nil {
		return "", err
	}
	return h.pool, nil
}

func (h Host) made() error {
	if h.mode == "" {
		return ErrHost
	}
	return nil
}

// nodeSelector is the selector of a placement as the map that a pod has, by the stock operator's own conversion: nil for none, empty for
// every node.
func nodeSelector(placement *operatorv1.NodePlacement) (map[string]string, error) {
	if placement == nil {
		return nil, nil
	}
	selector, err := metav1.LabelSelectorAsMap(placement.NodeSelector)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNodeSelector, err)
	}
	return selector, nil
}

const controlPlaneLabel = "node-role.kubernetes.io/control-plane"

func poolOf(selector map[string]string, defaultPlacement configv1.DefaultPlacement) topology.Pool {
	if selector == nil {
		if defaultPlacement == configv1.DefaultPlacementControlPlane {
			return topology.ControlPlanePool
		}
		return topology.WorkerPool
	}
	labels := topology.PlacementOf(topology.ControlPlanePool).NodeSelector()
	labels[controlPlaneLabel] = ""
	for label := range labels {
		if _, ok := selector[label]; ok {
			return topology.ControlPlanePool
		}
	}
	return topology.WorkerPool
}

// usesHostNetwork: the strategy in status is the one in effect; before it is known, it depends on the platform, since without a load
// balancer, ports of the node are all there is (U-ING-7).
func usesHostNetwork(cluster topology.Cluster, ic *operatorv1.IngressController) bool {
	strategy := ic.Status.EndpointPublishingStrategy
	if strategy == nil {
		strategy = ic.Spec.EndpointPublishingStrategy
	}
	if strategy == nil {
		return !topology.ProvidesLoadBalancer(cluster.Platform)
	}
	return strategy.Type == operatorv1.HostNetworkStrategyType
}
