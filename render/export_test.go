package render

import (
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/store"
)

// Start returns the API in memory as the first loop finds it.
func Start(s *inputs.Settings) (*store.Store, error) { return prepare(s.Cluster, nil) }
