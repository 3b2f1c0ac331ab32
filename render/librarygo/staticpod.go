// SPDX-License-Identifier: Apache-2.0

package librarygo

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/openshift/library-go/pkg/operator/resource/resourceapply"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/staticpods"
	"github.com/solonode/sno/render/store"
)

// StaticPod has what the operators of static pods differ in.
type StaticPod struct {
	Operator Operator
	Pod      staticpods.Pod
	// Nodes are the names of the control-plane nodes.
	Nodes []string
	// Resources has the *.yaml files of objects to create, of which Wanted selects by the file's name.
	Resources fs.FS
	Wanted    func(file string) bool
	Observers []Observer
	// Desired returns the operator's own ConfigMaps and Secrets, which Writes selects, from the observed configuration.
	Desired func(context.Context, *store.Session) ([]runtime.Object, error)
	Writes  []store.Pattern
	Copies  []SyncRule
}

// Steps returns the loops in order: the objects to create, observation, the operator's own objects and copies until
// nothing changes, and a revision of all.
func (p StaticPod) Steps() []loop.Step {
	name := p.Operator.operand
	return []loop.Step{
		loop.Once(StaticResources(name+": static resources", p.Operator, p.Resources, p.Wanted)),
		loop.Cycle(maxRounds,
			ConfigObservation(name+": config observation", p.Operator, p.Observers...),
			p.targetConfig(name+": target config"),
			ResourceSync(name+": resource sync", p.Operator, p.Copies...),
		),
		loop.Once(Revision(name+": revision", p.Operator, p.Pod.Namespace, p.Pod.ConfigMaps, p.Pod.Secrets)),
		loop.Once(NodeStatus(name+": revision of the nodes", p.Operator, p.Nodes...)),
	}
}

func (p StaticPod) targetConfig(name string) loop.Loop {
	return loop.Loop{
		Name:       name,
		Writes:     p.Writes,
		AllowStale: p.Operator.stale(),
		New: loop.Stateless(func(ctx context.Context, s *store.Session) error {
			objects, err := p.Desired(ctx, s)
			if err != nil {
				return err
			}
			return Apply(ctx, s, objects...)
		}),
	}
}

// Apply creates ConfigMaps and Secrets, or updates those whose data, labels or annotations differ.
func Apply(ctx context.Context, s *store.Session, objects ...runtime.Object) error {
	core := s.Kube().CoreV1()
	for _, object := range objects {
		var err error
		switch object := object.(type) {
		case *corev1.ConfigMap:
			if _, _, err = resourceapply.ApplyConfigMap(ctx, core, recorder(s), object); err != nil {
				err = fmt.Errorf("apply configmap %s/%s: %w", object.Namespace, object.Name, err)
			}
		case *corev1.Secret:
			if _, _, err = resourceapply.ApplySecret(ctx, core, recorder(s), object); err != nil {
				err = fmt.Errorf("apply secret %s/%s: %w", object.Namespace, object.Name, err)
			}
		default:
			err = fmt.Errorf("apply %T: %w", object, store.ErrUnsupported)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
