package controller

import (
	"context"
	"errors"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/console"
)

// versionOperator does what the cluster-version-operator does as far as downloads is concerned: it says which ClusterVersion
// it works with, and writes the Deployment as its manifest has it, by Update, unless the overrides that it has seen say that it is
// unmanaged. What it has seen may be old.
type versionOperator struct {
	*cluster
	seen []configv1.ComponentOverride
}

// act is one round of both, and of the Deployment controller.
func (o *versionOperator) act() {
	o.Helper()
	if err := o.observe(o.Context()); err != nil {
		o.Fatal(err)
	}
	if err := o.sync(o.Context()); err != nil {
		o.Fatal(err)
	}
	o.rollOut()
}

// observe reads the ClusterVersion and says so in its status. What somebody writes at the same time wins; the next round sees it.
func (o *versionOperator) observe(ctx context.Context) error {
	v := &configv1.ClusterVersion{}
	if err := o.admin.Get(ctx, client.ObjectKey{Name: console.ClusterVersionName}, v); err != nil {
		return client.IgnoreNotFound(err)
	}
	o.seen = v.Spec.Overrides
	if v.Status.ObservedGeneration == v.Generation && len(v.Status.History) > 0 {
		return nil
	}
	v.Status.ObservedGeneration = v.Generation
	v.Status.VersionHash = "hash"
	v.Status.Desired = configv1.Release{Version: "4.7.0", Image: "release"}
	v.Status.AvailableUpdates = []configv1.Release{}
	v.Status.History = []configv1.UpdateHistory{{State: configv1.CompletedUpdate, StartedTime: v.CreationTimestamp, CompletionTime: &v.CreationTimestamp, Version: "4.7.0", Image: "release"}}
	err := o.admin.Status().Update(ctx, v, client.FieldOwner(console.ClusterVersionOperator))
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// sync makes downloads what the manifest says.
func (o *versionOperator) sync(ctx context.Context) error {
	if slices.ContainsFunc(o.seen, func(e configv1.ComponentOverride) bool {
		return e.Kind == "Deployment" && e.Group == "apps" && e.Namespace == console.Namespace && e.Name == console.DownloadsName && e.Unmanaged
	}) {
		return nil
	}
	want := manifest(console.DownloadsName)
	have := &appsv1.Deployment{}
	err := o.admin.Get(ctx, client.ObjectKeyFromObject(want), have)
	if apierrors.IsNotFound(err) {
		return o.admin.Create(ctx, want, client.FieldOwner(console.ClusterVersionOperator))
	} else if err != nil {
		return err
	}
	// As the manifest is, with what the API server fills in.
	asIs := have.DeepCopy()
	have.Spec = want.Spec
	have.Spec.Template.Spec.DeprecatedServiceAccount = asIs.Spec.Template.Spec.DeprecatedServiceAccount
	if err := o.admin.Update(ctx, have, client.FieldOwner(console.ClusterVersionOperator), client.DryRunAll); err != nil {
		return ignoreRace(err)
	}
	if equality.Semantic.DeepEqual(asIs.Spec, have.Spec) {
		return nil
	}
	have.ResourceVersion = asIs.ResourceVersion
	return ignoreRace(o.admin.Update(ctx, have, client.FieldOwner(console.ClusterVersionOperator)))
}

// ignoreRace is for a write that somebody else was faster than, and for an object that is gone: the next round sees it.
func ignoreRace(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// work lets it act again and again until the returned function is called.
func (o *versionOperator) work() (stop func()) {
	ctx, cancel := context.WithCancel(o.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := wait.PollUntilContextCancel(ctx, glance, true, func(ctx context.Context) (bool, error) {
			if err := o.observe(ctx); err != nil && ctx.Err() == nil {
				return false, err
			}
			err := errors.Join(o.sync(ctx), o.tryRollOut(ctx))
			if ctx.Err() != nil {
				return false, nil
			}
			return false, err
		})
		if err != nil && ctx.Err() == nil {
			o.Errorf("the cluster-version-operator: %v", err)
		}
	}()
	return func() { cancel(); <-done }
}
