// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"context"
	"errors"
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
	key, config, infrastructure, nodes := client.ObjectKey{Name: ingress.ConfigName}, &configv1.Ingress{}, &configv1.Infrastructure{}, &corev1.NodeList{}
	err := errors.Join(reader.Get(ctx, key, config), reader.Get(ctx, key, infrastructure), reader.List(ctx, nodes))
	if err == nil && config.Status.DefaultPlacement == "" {
		body := fmt.Appendf(nil, `{"status":{"defaultPlacement":%q}}`, stockDefaultPlacement(infrastructure, len(nodes.Items)))
		err = writer.Status().Patch(ctx, config, client.RawPatch(types.MergePatchType, body))
	}
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "The default placement is not written")
	}
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
