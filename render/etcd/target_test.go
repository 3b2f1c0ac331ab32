// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"testing"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/loop"
)

// Nothing is written if the endpoints, which kube-apiserver uses, are not those of the nodes.
func TestForeignEndpoints(t *testing.T) {
	s := fixture.Settings(inputs.Kubernetes, three[0])
	foreign := fixture.ConfigMap(endpoints.Namespace, endpoints.Name, map[string]string{"MTAuMC4wLjE": "10.0.0.1"})
	observation := Steps(s)[4].Loops[0]
	st := fixture.Store(t, fixture.Objects(s, foreign)...)
	if wrote, err := fixture.Run(st, loop.Once(observation), loop.Once(targetConfig(s))); !errors.Is(err, ErrWrongEndpoints) {
		t.Errorf("error %v, want %v; wrote %v", err, ErrWrongEndpoints, wrote)
	}
}
