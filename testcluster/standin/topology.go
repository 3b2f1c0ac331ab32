// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/topology"
)

// Topology reads the Infrastructure object. The last topology that was read remains when the object is deleted.
type Topology struct{ known *topology.Cluster }

// Read returns the topology, or nil if none was ever read.
func (t *Topology) Read(ctx context.Context, reader client.Reader) (*topology.Cluster, error) {
	infrastructure, err := Get(ctx, reader, "", ConfigName, &configv1.Infrastructure{})
	if err != nil {
		return nil, err
	}
	if infrastructure != nil {
		cluster, err := topology.FromInfrastructure(infrastructure)
		if err != nil {
			return nil, fmt.Errorf("reading the topology: %w", err)
		}
		t.known = &cluster
	}
	if t.known == nil {
		logr.FromContextOrDiscard(ctx).Info("Waiting for the Infrastructure object")
	}
	return t.known, nil
}
