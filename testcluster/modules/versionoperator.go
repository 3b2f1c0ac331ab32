// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/fakes/versionoperator"
)

// VersionOperator is the stand-in for the cluster-version-operator, which acts when the test calls it.
type VersionOperator struct {
	*versionoperator.Operator
	c *Cluster
}

// VersionOperator returns a stand-in that has observed nothing. The manifests must have a spec.
func (c *Cluster) VersionOperator(objects ...client.Object) VersionOperator {
	c.Helper()
	var manifests []versionoperator.Manifest
	for _, object := range objects {
		manifest, err := versionoperator.Whole(c.Context(), c.Admin, object)
		c.NoError(err)
		manifests = append(manifests, manifest)
	}
	return VersionOperator{versionoperator.New(c.Admin, manifests...), c}
}

// RunOnce observes the ClusterVersion and updates objects.
func (o VersionOperator) RunOnce() {
	o.c.Helper()
	o.c.NoError(ignoreRace(o.Operator.RunOnce(o.c.Context())))
}

// Observe writes only the status of the ClusterVersion.
func (o VersionOperator) Observe() {
	o.c.Helper()
	o.c.NoError(ignoreRace(o.Operator.Observe(o.c.Context())))
}

// RunInBackground repeats RunOnce until stop is called. It ignores errors except for invalid objects.
func (o VersionOperator) RunInBackground() (stop func()) {
	ctx, cancel := context.WithCancel(o.c.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) { // the context ends it
			if err := o.Operator.RunOnce(ctx); apierrors.IsInvalid(err) {
				o.c.Errorf("the cluster-version-operator: %v", err)
			}
			return false, nil
		})
	}()
	return func() { cancel(); <-done }
}

// ignoreRace ignores errors because of a concurrent write, which the next round reads.
func ignoreRace(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
