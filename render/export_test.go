package render

import (
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/store"
)

// Start returns the API in memory as the first loop finds it.
func NewStore(s *inputs.Settings) (*store.Store, error) { return newStore(s.Cluster, nil) }
