package rehearsal

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type set = labels.Set

// contentSetter is an apply configuration that is filled with the answer, as the real client does it.
type contentSetter interface {
	SetUnstructuredContent(map[string]any)
}

// Apply implements client.Writer.
func (c *Client) Apply(ctx context.Context, intent runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	encoded, err := json.Marshal(intent)
	if err != nil {
		return fmt.Errorf("reading an intent: %w", err)
	}
	body := &unstructured.Unstructured{}
	if err := body.UnmarshalJSON(encoded); err != nil {
		return fmt.Errorf("reading an intent: %w", err)
	}
	options := (&client.ApplyOptions{}).ApplyOptions(opts)
	k := key{body.GroupVersionKind(), client.ObjectKeyFromObject(body)}
	live, written, err := c.now(ctx, k)
	if err != nil {
		return err
	}
	after := body.DeepCopy()
	if c.server != nil && !written {
		err = c.server.Apply(ctx, client.ApplyConfigurationFromUnstructured(after), append(slices.Clone(opts), client.DryRunAll)...)
	} else if err = c.bound(k, live, body); err == nil {
		after, err = c.converters.apply(live, body, options.FieldManager, ptr.Deref(options.Force, false))
	}
	if err != nil {
		return err
	}
	next(live, after)
	if len(options.DryRun) == 0 {
		c.keep(k, live, after)
	}
	if answer, ok := intent.(contentSetter); ok {
		answer.SetUnstructuredContent(after.DeepCopy().Object)
	}
	return nil
}

// Patch implements client.Writer.
func (c *Client) Patch(ctx context.Context, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
	gvk, err := c.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	options := (&client.PatchOptions{}).ApplyOptions(opts)
	k := key{gvk, client.ObjectKeyFromObject(object)}
	live, written, err := c.now(ctx, k)
	if err != nil {
		return err
	}
	if live == nil {
		return apierrors.NewNotFound(c.resource(gvk), k.Name)
	}
	var after *unstructured.Unstructured
	if c.server != nil && !written {
		after = live.DeepCopy()
		err = c.server.Patch(ctx, after, patch, append(slices.Clone(opts), client.DryRunAll)...)
	} else {
		after, err = c.patched(k, live, object, patch, options.FieldManager)
	}
	if err != nil {
		return err
	}
	next(live, after)
	if len(options.DryRun) == 0 {
		c.keep(k, live, after)
	}
	return fill(object, after)
}

// patched is the object after a patch that is made here.
func (c *Client) patched(k key, live *unstructured.Unstructured, object client.Object, patch client.Patch, manager string) (*unstructured.Unstructured, error) {
	data, err := patch.Data(object)
	if err != nil {
		return nil, fmt.Errorf("reading a patch: %w", err)
	}
	after, err := patchJSON(live, patch.Type(), data)
	if err != nil {
		return nil, apierrors.NewInvalid(k.GroupKind(), k.Name, nil)
	}
	if err := c.bound(k, live, after); err != nil {
		return nil, err
	}
	return c.converters.update(live, after, manager)
}

// Delete implements client.Writer. What else the cluster would delete along with the object is not rehearsed.
func (c *Client) Delete(ctx context.Context, object client.Object, opts ...client.DeleteOption) error {
	gvk, err := c.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	k := key{gvk, client.ObjectKeyFromObject(object)}
	live, written, err := c.now(ctx, k)
	switch {
	case err != nil:
		return err
	case live == nil:
		return apierrors.NewNotFound(c.resource(gvk), k.Name)
	case c.server != nil && !written:
		err = c.server.Delete(ctx, object.DeepCopyObject().(client.Object), append(slices.Clone(opts), client.DryRunAll)...)
	case options.Preconditions != nil:
		wanted := &unstructured.Unstructured{}
		wanted.SetUID(ptr.Deref(options.Preconditions.UID, ""))
		wanted.SetResourceVersion(ptr.Deref(options.Preconditions.ResourceVersion, ""))
		err = c.bound(k, live, wanted)
	}
	if err == nil && len(options.DryRun) == 0 {
		c.keep(k, live, nil)
	}
	return err
}

// bound refuses what is meant for another object, or for another version of it.
func (c *Client) bound(k key, live, wanted *unstructured.Unstructured) error {
	has := &unstructured.Unstructured{}
	if live != nil {
		has = live
	}
	for _, each := range []struct{ name, have, want string }{
		{"uid", string(has.GetUID()), string(wanted.GetUID())},
		{"resourceVersion", has.GetResourceVersion(), wanted.GetResourceVersion()},
	} {
		if each.want != "" && each.want != each.have {
			return apierrors.NewConflict(c.resource(k.GroupVersionKind), k.Name,
				fmt.Errorf("%w: %s mismatch: %q is wanted, %q is there", ErrNotLive, each.name, each.want, each.have))
		}
	}
	return nil
}

// next gives the object the version that it would have.
func next(before, after *unstructured.Unstructured) {
	if before == nil {
		if after.GetUID() == "" {
			after.SetUID(types.UID("rehearsed-" + after.GetName()))
		}
		after.SetResourceVersion("1")
		after.SetGeneration(1)
		return
	}
	if equal(before, after) {
		after.SetResourceVersion(before.GetResourceVersion())
		return
	}
	version, err := strconv.ParseUint(before.GetResourceVersion(), 10, 64)
	if err != nil {
		version = 0
	}
	after.SetResourceVersion(strconv.FormatUint(version+1, 10))
	if !reflect.DeepEqual(before.Object["spec"], after.Object["spec"]) {
		after.SetGeneration(before.GetGeneration() + 1)
	}
}

// equal compares all but what the API server counts, and when.
func equal(a, b *unstructured.Unstructured) bool {
	strip := func(u *unstructured.Unstructured) map[string]any {
		u = u.DeepCopy()
		u.SetResourceVersion("")
		u.SetGeneration(0)
		entries := u.GetManagedFields()
		for i := range entries {
			entries[i].Time = nil
		}
		slices.SortFunc(entries, func(x, y metav1.ManagedFieldsEntry) int {
			return compare(x.Manager+string(x.Operation)+x.Subresource, y.Manager+string(y.Operation)+y.Subresource)
		})
		u.SetManagedFields(entries)
		return u.Object
	}
	return reflect.DeepEqual(strip(a), strip(b))
}
