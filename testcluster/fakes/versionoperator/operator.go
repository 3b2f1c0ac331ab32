// SPDX-License-Identifier: Apache-2.0

package versionoperator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/scenario"
)

// User is its user, which identifies its requests, and its field manager.
const User = scenario.VersionOperatorManager

var versionKey = client.ObjectKey{Name: scenario.ClusterVersionName}

// cacheDelay bounds the delay of the event that updates a stale cache.
const cacheDelay = 50 * time.Millisecond

// Run runs the stand-in for a release with these manifests until the context ends, which is no error.
func Run(ctx context.Context, restConfig *rest.Config, manifests ...Manifest) error {
	scheme, err := embedded.NewScheme()
	if err != nil {
		return err
	}
	named := func(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
	selected := map[client.Object]cache.ByObject{&configv1.ClusterVersion{}: {Field: named(versionKey.Name)}}
	kinds := map[string]client.Object{}
	for _, m := range manifests {
		object, seen := kinds[m.kind]
		if !seen {
			object = m.object()
			kinds[m.kind] = object
			selected[object] = cache.ByObject{Namespaces: map[string]cache.Config{}}
		}
		selected[object].Namespaces[m.key.Namespace] = cache.Config{FieldSelector: named(m.key.Name)}
	}
	manager, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme:                 scheme,
		Logger:                 logr.Discard(),
		Cache:                  cache.Options{ByObject: selected},
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Controller:             config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return fmt.Errorf("make the manager of the cluster-version-operator: %w", err)
	}
	always := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: versionKey}}
	})
	controller := ctrl.NewControllerManagedBy(manager).Named(User).For(&configv1.ClusterVersion{})
	for _, object := range kinds {
		controller.Watches(object, always)
	}
	if err := controller.Complete(New(manager.GetClient(), manifests...)); err != nil {
		return fmt.Errorf("make the controller of the cluster-version-operator: %w", err)
	}
	if err := manager.Start(ctx); err != nil {
		return fmt.Errorf("run the cluster-version-operator: %w", err)
	}
	return nil
}

// Operator is the stand-in without watches: it acts when it is called.
type Operator struct {
	kube      client.Client
	manifests []Manifest
}

// New returns the stand-in for a release with these manifests.
func New(kube client.Client, manifests ...Manifest) *Operator {
	return &Operator{client.WithFieldOwner(kube, User), manifests}
}

// Reconcile implements reconcile.Reconciler. It is never run concurrently. With a stale cache the API server refuses
// a write, and the next event triggers another reconciliation.
func (o *Operator) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	err := o.RunOnce(ctx)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return reconcile.Result{RequeueAfter: cacheDelay}, nil
	}
	return reconcile.Result{}, err
}

// RunOnce brings all objects to their manifests and publishes the status. Without a ClusterVersion it does nothing.
func (o *Operator) RunOnce(ctx context.Context) error { return o.run(ctx, o.manifests) }

// Observe only publishes the status.
func (o *Operator) Observe(ctx context.Context) error { return o.run(ctx, nil) }

func (o *Operator) run(ctx context.Context, manifests []Manifest) error {
	version := &configv1.ClusterVersion{}
	if err := o.kube.Get(ctx, versionKey, version); err != nil {
		return client.IgnoreNotFound(err)
	}
	// First the manifest, then the status: after a generation is observed, nothing is written for an older one.
	for _, m := range manifests {
		if slices.Contains(version.Spec.Overrides, m.override()) {
			continue
		}
		if err := o.bring(ctx, m); err != nil {
			return err
		}
	}
	return o.report(ctx, version)
}

// Matches reports whether an object is as in its manifest.
func (o *Operator) Matches(live client.Object) bool {
	kind := live.GetObjectKind().GroupVersionKind()
	return slices.ContainsFunc(o.manifests, func(m Manifest) bool {
		return m.key == client.ObjectKeyFromObject(live) && m.kind == kind.Kind && !m.enforce(live.DeepCopyObject().(client.Object))
	})
}

// bring creates the object or updates the fields of the manifest.
func (o *Operator) bring(ctx context.Context, m Manifest) error {
	live := m.object()
	err := o.kube.Get(ctx, m.key, live)
	switch {
	case apierrors.IsNotFound(err):
		err = o.kube.Create(ctx, m.object())
	case err == nil && live.GetDeletionTimestamp() == nil && m.enforce(live):
		err = o.kube.Update(ctx, live)
	}
	if err != nil {
		return fmt.Errorf("bring %s %s: %w", m.kind, m.key, err)
	}
	return nil
}

// report publishes the observed generation in the status.
func (o *Operator) report(ctx context.Context, live *configv1.ClusterVersion) error {
	version := live.DeepCopy()
	version.Status.ObservedGeneration = version.Generation
	if len(version.Status.History) == 0 { // nobody has installed the cluster
		version.Status.VersionHash, version.Status.AvailableUpdates = "hash", []configv1.Release{}
		version.Status.Desired = configv1.Release{Version: "4.7.0", Image: "release"}
		version.Status.History = []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "4.7.0", Image: "release",
			StartedTime: version.CreationTimestamp, CompletionTime: &version.CreationTimestamp}}
	}
	if equality.Semantic.DeepEqual(live.Status, version.Status) {
		return nil
	}
	if err := o.kube.Status().Update(ctx, version); err != nil {
		return fmt.Errorf("write the status of ClusterVersion %s: %w", version.Name, err)
	}
	return nil
}
