// SPDX-License-Identifier: Apache-2.0

package ingress

import "github.com/solonode/sno/topology"

// PoolOf returns the pool of the routers.
func PoolOf(h Host) topology.Pool { return h.pool }
