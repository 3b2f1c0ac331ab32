package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrNotRehearsed is returned for writes that no module makes, so nobody has written how they are rehearsed.
var ErrNotRehearsed = errors.New("this write cannot be rehearsed")

// Write is what became of one object.
type Write struct {
	schema.GroupVersionKind
	client.ObjectKey
	// Before and After are the object as it is and as it would be; nil where there is none.
	Before, After *unstructured.Unstructured
}

type key struct {
	schema.GroupVersionKind
	client.ObjectKey
}

// Client implements client.Client. It is safe for concurrent use.
type Client struct {
	client.Client // reads; every method that writes is one of ours
	server        client.Client
	converters    converters

	mu      sync.Mutex
	order   []key
	written map[key]*Write
}

var _ client.Client = &Client{}

// New is a client that reads from base. server is asked what it would make of writes; nil sends nothing.
func New(base, server client.Client) (*Client, error) {
	known, err := newConverters()
	if err != nil {
		return nil, err
	}
	return &Client{Client: base, server: server, converters: known, written: map[key]*Write{}}, nil
}

// Writes lists the objects that would be written, in the order of the first write to each. Those that would end as they are now are
// left out.
func (c *Client) Writes() []Write {
	c.mu.Lock()
	defer c.mu.Unlock()
	var writes []Write
	for _, k := range c.order {
		w := c.written[k]
		if w.Before == nil && w.After == nil || w.Before != nil && w.After != nil && equal(w.Before, w.After) {
			continue
		}
		writes = append(writes, *w)
	}
	return writes
}

// Get implements client.Reader.
func (c *Client) Get(ctx context.Context, at client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	gvk, err := c.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	c.mu.Lock()
	w, ok := c.written[key{gvk, at}]
	c.mu.Unlock()
	switch {
	case !ok:
		return c.Client.Get(ctx, at, object, opts...)
	case w.After == nil:
		return apierrors.NewNotFound(c.resource(gvk), at.Name)
	}
	return fill(object, w.After)
}

// List implements client.Reader. What was written shows in lists of whole objects; nobody writes what is listed in another form.
func (c *Client) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := c.Client.List(ctx, list, opts...); err != nil {
		return err
	}
	all, ok := list.(*unstructured.UnstructuredList)
	if !ok {
		return nil
	}
	wanted := (&client.ListOptions{}).ApplyOptions(opts)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.order {
		if k.GroupVersion().WithKind(k.Kind+"List") != all.GroupVersionKind() {
			continue
		}
		all.Items = slices.DeleteFunc(all.Items, func(u unstructured.Unstructured) bool { return client.ObjectKeyFromObject(&u) == k.ObjectKey })
		if now := c.written[k].After; now != nil && matches(now, wanted) {
			all.Items = append(all.Items, *now.DeepCopy())
		}
	}
	return nil
}

func matches(u *unstructured.Unstructured, wanted *client.ListOptions) bool {
	if wanted.Namespace != "" && u.GetNamespace() != wanted.Namespace {
		return false
	}
	return wanted.LabelSelector == nil || wanted.LabelSelector.Matches(set(u.GetLabels()))
}

// resource names the kind in errors as an API server does.
func (c *Client) resource(gvk schema.GroupVersionKind) schema.GroupResource {
	mapping, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}
	}
	return mapping.Resource.GroupResource()
}

// now is the object as the rehearsal has it, and whether it was written already. It is nil where there is none.
func (c *Client) now(ctx context.Context, k key) (*unstructured.Unstructured, bool, error) {
	c.mu.Lock()
	w, ok := c.written[k]
	c.mu.Unlock()
	if ok {
		return w.After, true, nil
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(k.GroupVersionKind)
	switch err := c.Client.Get(ctx, k.ObjectKey, u); {
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	return u, false, nil
}

// keep notes a write.
func (c *Client) keep(k key, before, after *unstructured.Unstructured) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, ok := c.written[k]
	if !ok {
		w = &Write{GroupVersionKind: k.GroupVersionKind, ObjectKey: k.ObjectKey, Before: before}
		c.written[k], c.order = w, append(c.order, k)
	}
	w.After = after
}

// Create implements client.Writer. No module makes an object in this way, nor in those below.
func (*Client) Create(context.Context, client.Object, ...client.CreateOption) error {
	return fmt.Errorf("%w: create", ErrNotRehearsed)
}

// Update implements client.Writer.
func (*Client) Update(context.Context, client.Object, ...client.UpdateOption) error {
	return fmt.Errorf("%w: update", ErrNotRehearsed)
}

// DeleteAllOf implements client.Writer.
func (*Client) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return fmt.Errorf("%w: delete of many", ErrNotRehearsed)
}

// Status implements client.StatusClient.
func (c *Client) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements client.SubResourceClientConstructor.
func (*Client) SubResource(name string) client.SubResourceClient { return refusing{name} }

// refusing is the client of a subresource.
type refusing struct{ name string }

func (r refusing) refuse() error { return fmt.Errorf("%w: subresource %s", ErrNotRehearsed, r.name) }

func (r refusing) Get(context.Context, client.Object, client.Object, ...client.SubResourceGetOption) error {
	return r.refuse()
}

func (r refusing) Create(context.Context, client.Object, client.Object, ...client.SubResourceCreateOption) error {
	return r.refuse()
}

func (r refusing) Update(context.Context, client.Object, ...client.SubResourceUpdateOption) error {
	return r.refuse()
}

func (r refusing) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return r.refuse()
}

func (r refusing) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return r.refuse()
}

// fill puts the object into what a caller reads it with.
func fill(into client.Object, from *unstructured.Unstructured) error {
	if u, ok := into.(*unstructured.Unstructured); ok {
		u.Object = from.DeepCopy().Object
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.DeepCopy().Object, into); err != nil {
		return fmt.Errorf("decoding %s %s: %w", from.GetKind(), client.ObjectKeyFromObject(from), err)
	}
	return nil
}
