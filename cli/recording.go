package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/cli/plan"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
)

// recording is a client that notes what was written.
type recording struct {
	client.Client
	// verb is what a write is called that is no deletion.
	verb  string
	count int
	items []done
}

func (r *recording) note(object *unstructured.Unstructured, verb string, dryRun []string) {
	if len(dryRun) > 0 {
		return
	}
	r.count++
	item := done{Object: plan.NameOf(object), Outcome: verb}
	if !slices.Contains(r.items, item) {
		r.items = append(r.items, item)
	}
}

func (r *recording) done(module string) []done {
	for i := range r.items {
		r.items[i].Module = module
	}
	return r.items
}

// Apply implements client.Writer.
func (r *recording) Apply(ctx context.Context, intent runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	encoded, err := json.Marshal(intent)
	if err != nil {
		return fmt.Errorf("reading an intent: %w", err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(encoded); err != nil {
		return fmt.Errorf("reading an intent: %w", err)
	}
	if err := r.Client.Apply(ctx, intent, opts...); err != nil {
		return err
	}
	r.note(object, r.verb, (&client.ApplyOptions{}).ApplyOptions(opts).DryRun)
	return nil
}

// Patch implements client.Writer.
func (r *recording) Patch(ctx context.Context, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if err := r.Client.Patch(ctx, object, patch, opts...); err != nil {
		return err
	}
	return r.noteObject(object, r.verb, (&client.PatchOptions{}).ApplyOptions(opts).DryRun)
}

// Delete implements client.Writer.
func (r *recording) Delete(ctx context.Context, object client.Object, opts ...client.DeleteOption) error {
	if err := r.Client.Delete(ctx, object, opts...); err != nil {
		return err
	}
	return r.noteObject(object, "deleted", (&client.DeleteOptions{}).ApplyOptions(opts).DryRun)
}

func (r *recording) noteObject(object client.Object, verb string, dryRun []string) error {
	gvk, err := r.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetName(object.GetName())
	u.SetNamespace(object.GetNamespace())
	r.note(u, verb, dryRun)
	return nil
}

// conditions takes off what a controller of the module showed on the operator's own resource.
func (r *recording) conditions(ctx context.Context, target *unstructured.Unstructured, module string) error {
	if target == nil {
		return nil
	}
	owner := patch.FieldOwner(module)
	own, err := ownership.Applied(target, owner, "status")
	if err != nil || own.Empty() {
		return err
	}
	nothing := &unstructured.Unstructured{}
	nothing.SetGroupVersionKind(target.GroupVersionKind())
	nothing.SetName(target.GetName())
	nothing.SetNamespace(target.GetNamespace())
	nothing.SetUID(target.GetUID())
	if err := r.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(nothing.DeepCopy()), client.FieldOwner(owner)); err != nil {
		return fmt.Errorf("taking conditions off %s: %w", plan.NameOf(target), err)
	}
	r.note(nothing, r.verb, nil)
	return nil
}
