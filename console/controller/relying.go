package controller

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/manager"
	"github.com/solonode/sno/patch/ownership"
)

// relying is a client that writes one object only while another one is, in the part that counts, as it was when the write was
// decided on. The cache of one kind may be ahead of that of the other: a topology that flips to and fro could otherwise have
// downloads shaped by an override that was given back a moment ago.
type relying struct {
	client.Client
	live client.Reader
	on   manager.Object
	// as is how the object was; nil for absent.
	as *unstructured.Unstructured
	// part is a text of what the write relies on.
	part func(*unstructured.Unstructured) (string, error)
}

// Apply implements client.Client.
func (r relying) Apply(ctx context.Context, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if err := r.check(ctx); err != nil {
		return err
	}
	return r.Client.Apply(ctx, config, opts...)
}

// Patch implements client.Client.
func (r relying) Patch(ctx context.Context, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if err := r.check(ctx); err != nil {
		return err
	}
	return r.Client.Patch(ctx, object, patch, opts...)
}

// check is an apply.ErrStale when the object has changed, so that everything is decided anew.
func (r relying) check(ctx context.Context) error {
	now := r.on.Unstructured()
	switch err := r.live.Get(ctx, r.on.Key(), now); {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		now = nil
	case err != nil:
		return fmt.Errorf("reading %s %s once more: %w", r.on.Kind, r.on.Key(), err)
	}
	then, err := r.partOf(r.as)
	if err != nil {
		return err
	}
	is, err := r.partOf(now)
	if err != nil {
		return err
	}
	if is != then {
		return fmt.Errorf("%w: %s %s, on which the write relies", apply.ErrStale, r.on.Kind, r.on.Key())
	}
	return nil
}

func (r relying) partOf(u *unstructured.Unstructured) (string, error) {
	if u == nil {
		return "", nil
	}
	part, err := r.part(u)
	return string(u.GetUID()) + " " + part, err
}

// entry is what a ClusterVersion says about downloads. That the cluster-version-operator has seen it stays true when somebody
// edits something else.
func entry(u *unstructured.Unstructured) (string, error) {
	version := &configv1.ClusterVersion{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, version); err != nil {
		return "", fmt.Errorf("decoding the ClusterVersion: %w", err)
	}
	state, err := console.ReadOverride(version)
	state.Observed = false
	return fmt.Sprintf("%+v", state), err
}

// hold is what we have on a Deployment, and whether it is going.
func hold(u *unstructured.Unstructured) (string, error) {
	own, err := ownership.Applied(u, console.FieldOwner, "")
	if err != nil {
		return "", fmt.Errorf("reading the owners of the %s Deployment: %w", u.GetName(), err)
	}
	return fmt.Sprint(u.GetDeletionTimestamp() != nil, own), nil
}
