// SPDX-License-Identifier: Apache-2.0

package librarygo_test

import (
	"errors"
	"testing"
	"testing/fstest"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
)

// A loop fails if its operator is unmanaged or missing.
func TestUnmanaged(t *testing.T) {
	files := fstest.MapFS{"namespace.yaml": {Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n")}}
	for name, step := range map[string]loop.Step{
		"observation": loop.Once(librarygo.ConfigObservation("loop", operator, observes(nil))),
		"encryption":  librarygo.Encryption(namespace, operator, encrypted...),
		"copies":      loop.Once(librarygo.ResourceSync("loop", operator)),
		"static":      loop.Once(librarygo.StaticResources("loop", operator, files, all)),
		"revision":    loop.Once(librarygo.Revision("loop", operator, namespace, nil, nil)),
	} {
		t.Run(name, func(t *testing.T) {
			for _, state := range []operatorv1.ManagementState{operatorv1.Unmanaged, operatorv1.Removed} {
				resource := operator.Resource().(*operatorv1.KubeAPIServer)
				resource.Spec.ManagementState = state
				s := fixture.Store(t, resource, apiServer(configv1.EncryptionTypeAESCBC))
				err := run(t, s, step)
				if !errors.Is(err, librarygo.ErrUnmanaged) {
					t.Errorf("got %v, want %v", err, librarygo.ErrUnmanaged)
				}
				fails(t, err, "kubeapiservers cluster", string(state))
			}
			s := fixture.Store(t, apiServer(""))
			fails(t, run(t, s, step), `"cluster" not found`)
		})
	}
}
