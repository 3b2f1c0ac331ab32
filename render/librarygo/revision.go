// SPDX-License-Identifier: Apache-2.0

package librarygo

import (
	"context"
	"errors"
	"fmt"

	operatorv1 "github.com/openshift/api/operator/v1"
	"github.com/openshift/library-go/pkg/operator/revisioncontroller"

	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/staticpods"
	"github.com/solonode/sno/render/store"
)

// ErrNoRevision is returned if there is no revision yet.
var ErrNoRevision = errors.New("no revision yet")

// Revision returns the loop that copies changed objects under new names and writes the number into
// status.latestAvailableRevision. The first ConfigMap is the pod's.
func Revision(name string, operator Operator, namespace string, configMaps, secrets []staticpods.Resource) loop.Loop {
	l := loop.Loop{Name: name, Writes: []store.Pattern{operator.Pattern()}, AllowStale: operator.stale()}
	l.Writes = append(l.Writes, store.ConfigMaps(namespace, "revision-status-*")...)
	for _, r := range configMaps {
		l.Writes = append(l.Writes, store.ConfigMaps(namespace, r.Name+"-*")...)
	}
	for _, r := range secrets {
		l.Writes = append(l.Writes, store.Secrets(namespace, r.Name+"-*")...)
	}
	l.New = func(s *store.Session) (loop.Sync, error) {
		core := s.Kube().CoreV1()
		// The operator finds the copies by a label with this name.
		controller := revisioncontroller.NewRevisionController(operator.operand, namespace, adapt(configMaps), adapt(secrets),
			idleFactory{client: core}, operator.client(s), core, core, recorder(s), nil)
		return operator.managed(s, reconcile(controller, s)), nil
	}
	return l
}

func adapt(resources []staticpods.Resource) []revisioncontroller.RevisionResource {
	adapted := make([]revisioncontroller.RevisionResource, 0, len(resources))
	for _, r := range resources {
		adapted = append(adapted, revisioncontroller.RevisionResource{Name: r.Name, Optional: r.Optional})
	}
	return adapted
}

// NodeStatus returns the loop that writes the latest revision of each node into status.nodeStatuses, so that an
// operator continues from it.
func NodeStatus(name string, operator Operator, nodes ...string) loop.Loop {
	return loop.Loop{
		Name:       name,
		Writes:     []store.Pattern{operator.Pattern()},
		AllowStale: operator.stale(),
		New: loop.Stateless(func(ctx context.Context, s *store.Session) error {
			_, err := operator.client(s).updateStatus(ctx, func(current state) error {
				revision := current.status.LatestAvailableRevision
				if revision == 0 {
					return fmt.Errorf("%s %s: %w", operator, instance, ErrNoRevision)
				}
				current.status.NodeStatuses = nil
				for _, node := range nodes {
					current.status.NodeStatuses = append(current.status.NodeStatuses, operatorv1.NodeStatus{NodeName: node, CurrentRevision: revision})
				}
				return nil
			})
			return err
		}),
	}
}

// LatestRevision returns status.latestAvailableRevision of an operator's resource.
func LatestRevision(ctx context.Context, s *store.Session, operator Operator) (int32, error) {
	_, status, _, err := operator.client(s).GetOperatorStateWithQuorum(ctx)
	if err != nil {
		return 0, err
	}
	return status.LatestAvailableRevision, nil
}
