// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"cmp"
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/topology"
)

var (
	// ErrHost is returned for the zero Host.
	ErrHost = errors.New("empty Host: make it with NewHost")
	// ErrNoIngressController is returned for a nil IngressController.
	ErrNoIngressController = errors.New("no IngressController: pass the one whose router is shaped")
	// ErrNodeSelector is returned for a spec.nodePlacement.nodeSelector that is no map of labels, for example with the
	// operator Exists. The stock operator rejects it as well.
	ErrNodeSelector = errors.New("the node selector in spec.nodePlacement is not a map of labels; use matchLabels, or the operator In with one value")
	// ErrSharedHostPorts is returned for a Deployment whose pods cannot share the ports of their node.
	ErrSharedHostPorts = errors.New("the router's pods cannot share host ports")
)

// Host is a router that an ingress operator shapes. NewHost returns it.
type Host struct {
	pool topology.Pool
	mode configv1.TopologyMode // of the pool; empty in the zero Host only
	name string
	spec operatorv1.IngressControllerSpec

	selector    map[string]string // of spec; nil for none, empty for every node
	hostNetwork bool              // the routers bind ports of their nodes
	sharedPorts bool              // see WithSharedHostPorts
}

// NewHost returns the Host of the IngressController's router. defaultPlacement is status.defaultPlacement of
// ingresses.config.openshift.io/cluster. The spec is copied. Errors: topology.ErrClusterNotRead,
// ErrNoIngressController, and ErrNodeSelector with the IngressController's name.
func NewHost(cluster topology.Cluster, defaultPlacement configv1.DefaultPlacement, ic *operatorv1.IngressController) (Host, error) {
	if err := cluster.Validate(); err != nil {
		return Host{}, err
	}
	if ic == nil {
		return Host{}, ErrNoIngressController
	}
	selector, err := NodeSelector(ic.Spec.NodePlacement)
	if err != nil {
		return Host{}, fmt.Errorf("IngressController %s/%s: %w", ic.Namespace, ic.Name, err)
	}
	pool := cluster.PoolFor(SelectedPool(selector, defaultPlacement))
	return Host{
		pool: pool, mode: cluster.Governing(pool), name: ic.Name, spec: *ic.Spec.DeepCopy(),
		selector: selector, hostNetwork: usesHostNetwork(cluster, ic),
	}, nil
}

// WithSharedHostPorts returns a Host for a router that shares its ports with its successor, so that a rollout on a
// single node needs no outage (R-SNO-2): ShapeRouter removes the ports of all containers, because they would keep old
// and new pod apart, and the new pod starts first. Only a single router with host ports on a SingleReplica pool is
// affected. Others keep today's rollout: the scheduler would no longer keep several routers apart.
//
// ShapeRouter returns ErrSharedHostPorts if the Deployment prevents it. Other conditions depend on the router's image
// and on the node:
//
//   - Both processes listen with SO_REUSEPORT, the default of HAProxy, and have the same effective user.
//   - A new process listens only when its configuration is complete, because it gets requests at once. It checks its
//     readiness by itself, for example over a Unix socket: the old process may answer on any shared port.
//   - Its metrics are on another port in each pod, or both pods can bind that port too.
//   - On SIGTERM the old process closes its listeners, at once or later, and finishes what it has accepted.
//   - The node has net.ipv4.tcp_migrate_req=1, or connections that the old process has not accepted yet are reset
//     (U-ING-21, U-ING-22).
//   - No other pod of the node uses the ports: the scheduler does not prevent it any more.
//
// A pool of several nodes may run both pods on two of them. Then the ports do not matter, and the outage lasts until
// clients use the address of the new node, as with today's rollout. See docs/router-rollouts.md.
func (h Host) WithSharedHostPorts() Host {
	h.sharedPorts = true
	return h
}

func (h Host) validate() error {
	if h.mode == "" {
		return ErrHost
	}
	return nil
}

// NodeSelector returns the selector of a placement as a map, as the stock operator does: nil for none, empty for every
// node. Error: ErrNodeSelector.
func NodeSelector(placement *operatorv1.NodePlacement) (map[string]string, error) {
	if placement == nil {
		return nil, nil
	}
	selector, err := metav1.LabelSelectorAsMap(placement.NodeSelector)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNodeSelector, err)
	}
	return selector, nil
}

// SelectedPool returns the pool of routers with the node selector, which NodeSelector returns.
func SelectedPool(selector map[string]string, defaultPlacement configv1.DefaultPlacement) topology.Pool {
	_, master := selector["node-role.kubernetes.io/master"]
	_, controlPlane := selector["node-role.kubernetes.io/control-plane"]
	if master || controlPlane || selector == nil && defaultPlacement == configv1.DefaultPlacementControlPlane {
		return topology.ControlPlanePool
	}
	return topology.WorkerPool
}

// usesHostNetwork uses the strategy of the status, else of the spec, else of the platform (U-ING-7).
func usesHostNetwork(cluster topology.Cluster, ic *operatorv1.IngressController) bool {
	strategy := cmp.Or(ic.Status.EndpointPublishingStrategy, ic.Spec.EndpointPublishingStrategy)
	if strategy == nil {
		return !topology.ProvidesLoadBalancer(cluster.Platform)
	}
	return strategy.Type == operatorv1.HostNetworkStrategyType
}
