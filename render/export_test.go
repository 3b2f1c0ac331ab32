// SPDX-License-Identifier: Apache-2.0

package render

import (
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/store"
)

// NewStore returns the API in memory before the first loop.
func NewStore(s *inputs.Settings) (*store.Store, error) { return newStore(s.Cluster, nil) }
