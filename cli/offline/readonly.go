package offline

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Scheme implements client.Client.
func (*Client) Scheme() *runtime.Scheme { return clientgoscheme.Scheme }

// RESTMapper implements client.Client.
func (c *Client) RESTMapper() meta.RESTMapper { return c.mapper }

// GroupVersionKindFor implements client.Client.
func (*Client) GroupVersionKindFor(object runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(object, clientgoscheme.Scheme)
}

// IsObjectNamespaced implements client.Client.
func (c *Client) IsObjectNamespaced(object runtime.Object) (bool, error) {
	return apiutil.IsObjectNamespaced(object, clientgoscheme.Scheme, c.mapper)
}

// Apply implements client.Writer.
func (*Client) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return ErrReadOnly
}

// Create implements client.Writer.
func (*Client) Create(context.Context, client.Object, ...client.CreateOption) error {
	return ErrReadOnly
}

// Delete implements client.Writer.
func (*Client) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	return ErrReadOnly
}

// Update implements client.Writer.
func (*Client) Update(context.Context, client.Object, ...client.UpdateOption) error {
	return ErrReadOnly
}

// Patch implements client.Writer.
func (*Client) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return ErrReadOnly
}

// DeleteAllOf implements client.Writer.
func (*Client) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return ErrReadOnly
}

// Status implements client.StatusClient.
func (c *Client) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements client.SubResourceClientConstructor.
func (*Client) SubResource(string) client.SubResourceClient { return readOnly{} }

// readOnly is the client of every subresource.
type readOnly struct{}

func (readOnly) Get(context.Context, client.Object, client.Object, ...client.SubResourceGetOption) error {
	return ErrReadOnly
}

func (readOnly) Create(context.Context, client.Object, client.Object, ...client.SubResourceCreateOption) error {
	return ErrReadOnly
}

func (readOnly) Update(context.Context, client.Object, ...client.SubResourceUpdateOption) error {
	return ErrReadOnly
}

func (readOnly) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return ErrReadOnly
}

func (readOnly) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return ErrReadOnly
}
