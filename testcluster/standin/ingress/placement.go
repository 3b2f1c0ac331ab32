// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/ingress"
)

// writeDefaultPlacement sets a missing status.defaultPlacement of ingresses.config/cluster (U-ING-3). Like the stock
// operator it does that once at the start, and continues after an error.
func writeDefaultPlacement(ctx context.Context, reader client.Reader, writer client.StatusClient) {
	if err := tryDefaultPlacement(ctx, reader, writer); err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "The default placement is not written")
	}
}

func tryDefaultPlacement(ctx context.Context, reader client.Reader, writer client.StatusClient) error {
	key := client.ObjectKey{Name: ingress.ConfigName}
	config := &configv1.Ingress{}
	if err := reader.Get(ctx, key, config); err != nil {
		return fmt.Errorf("reading Ingress %s: %w", key.Name, err)
	}
	if config.Status.DefaultPlacement != "" {
		return nil
	}
	infrastructure := &configv1.Infrastructure{}
	if err := reader.Get(ctx, key, infrastructure); err != nil {
		return fmt.Errorf("reading Infrastructure %s: %w", key.Name, err)
	}
	var nodes corev1.NodeList
	if err := reader.List(ctx, &nodes); err != nil {
		return fmt.Errorf("listing the nodes: %w", err)
	}
	body := fmt.Appendf(nil, `{"status":{"defaultPlacement":%q}}`, stockDefaultPlacement(infrastructure, len(nodes.Items)))
	if err := writer.Status().Patch(ctx, config, client.RawPatch(types.MergePatchType, body)); err != nil {
		return fmt.Errorf("writing the status of Ingress %s: %w", key.Name, err)
	}
	return nil
}

// stockDefaultPlacement returns the control plane for a single node without a load balancer, and otherwise the workers:
// also for a single control-plane node that already has workers.
func stockDefaultPlacement(infrastructure *configv1.Infrastructure, nodes int) configv1.DefaultPlacement {
	status := infrastructure.Status
	single := nodes == 1 && status.ControlPlaneTopology == configv1.SingleReplicaTopologyMode && status.InfrastructureTopology == configv1.SingleReplicaTopologyMode
	if !single || status.PlatformStatus == nil {
		return configv1.DefaultPlacementWorkers
	}
	if platform := status.PlatformStatus.Type; platform != configv1.NonePlatformType && platform != configv1.ExternalPlatformType {
		return configv1.DefaultPlacementWorkers
	}
	return configv1.DefaultPlacementControlPlane
}
