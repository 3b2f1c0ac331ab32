// SPDX-License-Identifier: Apache-2.0

package patchtest

import (
	"context"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/solonode/sno/patch/overrides"
)

// FakeVersionOperator is a fake cluster-version-operator: it observes the ClusterVersion, and updates objects to their
// manifests unless the last observed spec.overrides make them unmanaged. Without a ClusterVersion it does nothing.
type FakeVersionOperator struct {
	*Cluster
	manifests []*unstructured.Unstructured // with the defaults of the API server
	seen      *configv1.ClusterVersion
}

// FakeVersionOperator returns a fake that has observed nothing. The manifests must have a spec.
func (c *Cluster) FakeVersionOperator(manifests ...client.Object) *FakeVersionOperator {
	c.Helper()
	o := &FakeVersionOperator{Cluster: c}
	for _, object := range manifests {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		c.NoError(err)
		manifest := &unstructured.Unstructured{Object: content}
		gvk, err := apiutil.GVKForObject(object, c.Admin.Scheme())
		c.NoError(err)
		manifest.SetGroupVersionKind(gvk)
		defaulted := manifest.DeepCopy()
		defaulted.SetName(manifest.GetName() + "-dry-run")
		c.NoError(c.Admin.Create(c.Context(), defaulted, client.DryRunAll))
		manifest.Object["spec"] = defaulted.Object["spec"]
		o.manifests = append(o.manifests, manifest)
	}
	return o
}

// RunOnce observes and updates once, and reports whether it wrote an object.
func (o *FakeVersionOperator) RunOnce() bool {
	o.Helper()
	o.NoError(o.observe(o.Context()))
	wrote, err := o.sync(o.Context())
	o.NoError(err)
	return wrote
}

// Observe is the first half of RunOnce: it writes only the status of the ClusterVersion.
func (o *FakeVersionOperator) Observe() {
	o.Helper()
	o.NoError(o.observe(o.Context()))
}

// RunInBackground repeats RunOnce until stop is called. It ignores errors except for invalid objects.
func (o *FakeVersionOperator) RunInBackground() (stop func()) {
	ctx, cancel := context.WithCancel(o.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) { // the context ends it
			err := o.observe(ctx)
			if err == nil {
				_, err = o.sync(ctx)
			}
			if apierrors.IsInvalid(err) {
				o.Errorf("the cluster-version-operator: %v", err)
			}
			return false, nil
		})
	}()
	return func() { cancel(); <-done }
}

func (o *FakeVersionOperator) observe(ctx context.Context) error {
	v := &configv1.ClusterVersion{}
	err := o.Admin.Get(ctx, client.ObjectKey{Name: overrides.ClusterVersionName}, v)
	if apierrors.IsNotFound(err) {
		o.seen = nil
		return nil
	} else if err != nil {
		return err
	}
	o.seen = v.DeepCopy()
	if v.Status.ObservedGeneration == v.Generation && len(v.Status.History) > 0 {
		return nil
	}
	v.Status = configv1.ClusterVersionStatus{
		ObservedGeneration: v.Generation, VersionHash: "hash", AvailableUpdates: []configv1.Release{},
		Desired: configv1.Release{Version: "4.7.0", Image: "release"},
		History: []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "4.7.0", Image: "release",
			StartedTime: v.CreationTimestamp, CompletionTime: &v.CreationTimestamp}},
	}
	return ignoreRace(o.Admin.Status().Update(ctx, v, client.FieldOwner(overrides.ClusterVersionOperator)))
}

func (o *FakeVersionOperator) sync(ctx context.Context) (wrote bool, err error) {
	owner := client.FieldOwner(overrides.ClusterVersionOperator)
	for _, manifest := range o.manifests {
		if o.seen == nil || slices.Contains(o.seen.Spec.Overrides, unmanaged(manifest)) {
			continue
		}
		live := manifest.DeepCopy()
		switch err = o.Admin.Get(ctx, client.ObjectKeyFromObject(manifest), live); {
		case apierrors.IsNotFound(err):
			err = o.Admin.Create(ctx, manifest.DeepCopy(), owner)
		case err != nil:
			return wrote, err
		case matches(manifest, live):
			continue
		default:
			live.SetAnnotations(labels.Merge(live.GetAnnotations(), manifest.GetAnnotations()))
			live.Object["spec"] = manifest.DeepCopy().Object["spec"]
			err = o.Admin.Update(ctx, live, owner)
		}
		if err != nil {
			return wrote, ignoreRace(err)
		}
		wrote = true
	}
	return wrote, nil
}

// Matches reports whether an object has the spec and the annotations of its manifest.
func (o *FakeVersionOperator) Matches(live *unstructured.Unstructured) bool {
	return slices.ContainsFunc(o.manifests, func(manifest *unstructured.Unstructured) bool {
		return unmanaged(manifest) == unmanaged(live) && matches(manifest, live)
	})
}

func matches(manifest, live *unstructured.Unstructured) bool {
	return labels.SelectorFromSet(manifest.GetAnnotations()).Matches(labels.Set(live.GetAnnotations())) &&
		equality.Semantic.DeepEqual(manifest.Object["spec"], live.Object["spec"])
}

func unmanaged(manifest *unstructured.Unstructured) configv1.ComponentOverride {
	gvk := manifest.GroupVersionKind()
	return configv1.ComponentOverride{Kind: gvk.Kind, Group: gvk.Group, Namespace: manifest.GetNamespace(), Name: manifest.GetName(), Unmanaged: true}
}

// ignoreRace ignores errors because of a concurrent write, which the next round reads.
func ignoreRace(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
