// SPDX-License-Identifier: Apache-2.0

// Package rehearsal is a client that writes in memory.
//
// Objects are read from a cluster or a must-gather until they are written, and from memory afterwards. With a server,
// the first write of an object is a server-side dry run, with defaults, admission, permissions and conflicts. All other
// writes are merged here, by the library of the API server.
package rehearsal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrUnsupported is returned for writes that no module makes.
var ErrUnsupported = errors.New("not supported by a rehearsal")

var errPrecondition = errors.New("the precondition does not hold")

// UIDPrefix begins the UIDs of objects that exist in a rehearsal only.
const UIDPrefix = "rehearsed-"

// Base is what a rehearsal reads from.
type Base interface {
	client.Reader
	RESTMapper() meta.RESTMapper
}

// Write is the change of one object. Before or After may be nil.
type Write struct {
	schema.GroupVersionKind
	client.ObjectKey
	Before, After *unstructured.Unstructured
}

// Client implements client.Client. It is safe for concurrent use.
type Client struct {
	client.Client // refuses all other requests
	base          client.Reader
	server        client.Client

	mu     sync.Mutex
	writes []*Write
}

// New returns a client that reads from base. With a server, writes are dry runs there; with nil nothing is sent.
func New(base Base, server client.Client) (*Client, error) {
	none, err := client.New(&rest.Config{Transport: noServer{}}, client.Options{Scheme: clientgoscheme.Scheme, Mapper: base.RESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("starting a rehearsal: %w", err)
	}
	c := &Client{Client: none, base: base}
	if server != nil {
		c.server = client.NewDryRunClient(server)
	}
	return c, nil
}

type noServer struct{}

func (noServer) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("%w: %s %s", ErrUnsupported, r.Method, r.URL.Path)
}

// Writes returns the objects that would change, in the order of their first writes.
func (c *Client) Writes() []Write {
	c.mu.Lock()
	defer c.mu.Unlock()
	var writes []Write
	for _, w := range c.writes {
		if w.Before != w.After && (w.Before == nil || w.After == nil || !equal(w.Before, w.After)) {
			writes = append(writes, *w)
		}
	}
	return writes
}

func (c *Client) written(gvk schema.GroupVersionKind, at client.ObjectKey) *Write {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.writes, func(w *Write) bool { return w.GroupVersionKind == gvk && w.ObjectKey == at }); i >= 0 {
		return c.writes[i]
	}
	return nil
}

// Get implements client.Reader.
func (c *Client) Get(ctx context.Context, at client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	gvk, err := c.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	switch w := c.written(gvk, at); {
	case w == nil:
		return c.base.Get(ctx, at, object, opts...)
	case w.After == nil:
		return apierrors.NewNotFound(Resource(gvk), at.Name)
	default:
		return Convert(w.After, object)
	}
}

// List implements client.Reader. Only lists of unstructured objects contain writes: modules write nothing that they
// list otherwise.
func (c *Client) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := c.base.List(ctx, list, opts...); err != nil {
		return err
	}
	all, ok := list.(*unstructured.UnstructuredList)
	if !ok {
		return nil
	}
	wanted := (&client.ListOptions{}).ApplyOptions(opts)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.writes {
		if w.GroupVersion().WithKind(w.Kind+"List") != all.GroupVersionKind() {
			continue
		}
		all.Items = slices.DeleteFunc(all.Items, func(u unstructured.Unstructured) bool { return client.ObjectKeyFromObject(&u) == w.ObjectKey })
		inNamespace := wanted.Namespace == "" || wanted.Namespace == w.Namespace
		if w.After != nil && inNamespace && (wanted.LabelSelector == nil || wanted.LabelSelector.Matches(labels.Set(w.After.GetLabels()))) {
			all.Items = append(all.Items, *w.After.DeepCopy())
		}
	}
	return nil
}

// Apply implements client.Writer.
func (c *Client) Apply(ctx context.Context, intent runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	body := &unstructured.Unstructured{}
	if err := Convert(intent, body); err != nil {
		return err
	}
	options := (&client.ApplyOptions{}).ApplyOptions(opts)
	live, remote, err := c.live(ctx, body)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	after := body.DeepCopy()
	if remote {
		err = c.server.Apply(ctx, client.ApplyConfigurationFromUnstructured(after), opts...)
	} else if err = precondition(live, body, body.GetUID(), body.GetResourceVersion()); err == nil {
		after, err = applied(live, body, options.FieldManager, ptr.Deref(options.Force, false))
	}
	if err != nil {
		return err
	}
	c.keep(live, after, options.DryRun)
	return Convert(after, intent)
}

// Patch implements client.Writer.
func (c *Client) Patch(ctx context.Context, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
	options := (&client.PatchOptions{}).ApplyOptions(opts)
	live, remote, err := c.live(ctx, object)
	if err != nil {
		return err
	}
	after := live.DeepCopy()
	if remote {
		err = c.server.Patch(ctx, after, patch, opts...)
	} else {
		after, err = patched(live, object, patch, options.FieldManager)
	}
	if err != nil {
		return err
	}
	c.keep(live, after, options.DryRun)
	return Convert(after, object)
}

// Delete implements client.Writer. Dependents stay.
func (c *Client) Delete(ctx context.Context, object client.Object, opts ...client.DeleteOption) error {
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	live, remote, err := c.live(ctx, object)
	switch {
	case err != nil:
		return err
	case remote:
		err = c.server.Delete(ctx, live.DeepCopy(), opts...)
	case options.Preconditions != nil:
		err = precondition(live, live, ptr.Deref(options.Preconditions.UID, ""), ptr.Deref(options.Preconditions.ResourceVersion, ""))
	}
	if err == nil {
		c.keep(live, nil, options.DryRun)
	}
	return err
}

// live returns the object, and whether the server receives the write.
func (c *Client) live(ctx context.Context, object client.Object) (live *unstructured.Unstructured, remote bool, err error) {
	gvk, err := c.GroupVersionKindFor(object)
	if err != nil {
		return nil, false, err
	}
	at := client.ObjectKeyFromObject(object)
	live = &unstructured.Unstructured{}
	live.SetGroupVersionKind(gvk)
	remote = c.server != nil && c.written(gvk, at) == nil
	if err := c.Get(ctx, at, live); err != nil {
		return nil, remote, err
	}
	return live, remote, nil
}

func (c *Client) keep(before, after *unstructured.Unstructured, dryRun []string) {
	if after != nil {
		setVersion(before, after)
	}
	if len(dryRun) > 0 {
		return
	}
	object := cmp.Or(after, before)
	gvk, at := object.GroupVersionKind(), client.ObjectKeyFromObject(object)
	w := c.written(gvk, at)
	c.mu.Lock()
	defer c.mu.Unlock()
	if w == nil {
		w = &Write{gvk, at, before, nil}
		c.writes = append(c.writes, w)
	}
	w.After = after
}

// Resource returns the resource of a kind.
func Resource(gvk schema.GroupVersionKind) schema.GroupResource {
	guess, _ := meta.UnsafeGuessKindToResource(gvk)
	return guess.GroupResource()
}

// precondition returns a conflict unless the live object has the UID and the version; empty ones are not compared.
func precondition(live, named *unstructured.Unstructured, uid types.UID, version string) error {
	if live == nil {
		live = &unstructured.Unstructured{}
	}
	if (uid == "" || uid == live.GetUID()) && (version == "" || version == live.GetResourceVersion()) {
		return nil
	}
	return apierrors.NewConflict(Resource(named.GroupVersionKind()), named.GetName(),
		fmt.Errorf("%w: the object has uid %q and resourceVersion %q", errPrecondition, live.GetUID(), live.GetResourceVersion()))
}

// setVersion sets uid, resourceVersion and generation.
func setVersion(before, after *unstructured.Unstructured) {
	switch {
	case before == nil:
		if after.GetUID() == "" {
			after.SetUID(types.UID(UIDPrefix + after.GetName()))
		}
		after.SetResourceVersion("1")
		after.SetGeneration(1)
	case equal(before, after):
		after.SetResourceVersion(before.GetResourceVersion())
	default:
		version, _ := strconv.ParseUint(before.GetResourceVersion(), 10, 64)
		after.SetResourceVersion(strconv.FormatUint(version+1, 10))
		if !reflect.DeepEqual(before.Object["spec"], after.Object["spec"]) {
			after.SetGeneration(before.GetGeneration() + 1)
		}
	}
}

// equal ignores resourceVersion, generation and the times of managedFields.
func equal(a, b *unstructured.Unstructured) bool {
	strip := func(u *unstructured.Unstructured) map[string]any {
		u = u.DeepCopy()
		u.SetResourceVersion("")
		u.SetGeneration(0)
		entries := u.GetManagedFields()
		for i := range entries {
			entries[i].Time = nil
		}
		u.SetManagedFields(entries)
		return u.Object
	}
	return reflect.DeepEqual(strip(a), strip(b))
}

// Convert copies an object or a list through JSON.
func Convert(from, into any) error {
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("converting a %T: %w", from, err)
	}
	return nil
}
