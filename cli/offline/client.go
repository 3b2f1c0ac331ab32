package offline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/solonode/sno/patch/mustgather"
)

// ErrReadOnly is returned for every write.
var ErrReadOnly = errors.New("a must-gather cannot be written to")

// Gap is something that is not known because of the must-gather.
type Gap struct {
	// Path is the file or the folder, as it is called in a must-gather.
	Path string
	// Err is what is wrong with it; nil when it is not there at all.
	Err error
}

func (g Gap) String() string {
	if g.Err != nil {
		return g.Err.Error()
	}
	return "not in the must-gather: " + g.Path
}

// Client implements client.Client on a must-gather. It is safe for concurrent use.
type Client struct {
	tree   *mustgather.Tree
	mapper *meta.DefaultRESTMapper

	mu   sync.Mutex
	gaps []Gap
}

var _ client.Client = &Client{}

// New reads from the tree. Of kinds there are the ones given, which may also be missing in the cluster: a must-gather does not tell.
func New(tree *mustgather.Tree, kinds ...Kind) *Client {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range kinds {
		scope := meta.RESTScopeRoot
		if kind.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		mapper.Add(kind.GroupVersionKind, scope)
	}
	return &Client{tree: tree, mapper: mapper}
}

// Kind is a kind that a must-gather may hold.
type Kind struct {
	schema.GroupVersionKind
	Namespaced bool
}

// Gaps lists what was asked for and is not known, each once, in the order in which it was asked for.
func (c *Client) Gaps() []Gap {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.gaps)
}

func (c *Client) note(gap Gap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.ContainsFunc(c.gaps, func(g Gap) bool { return g.String() == gap.String() }) {
		c.gaps = append(c.gaps, gap)
	}
}

// Get implements client.Reader.
func (c *Client) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(object, clientgoscheme.Scheme)
	if err != nil {
		return fmt.Errorf("reading the must-gather: %w", err)
	}
	resource := c.resource(gvk)
	u, err := c.tree.Get(resource, key.Namespace, key.Name)
	switch {
	case errors.Is(err, mustgather.ErrNotFound):
		if !c.tree.Gathered(resource, key.Namespace) {
			c.note(Gap{Path: c.tree.Path(resource, key.Namespace, key.Name)})
		}
		return apierrors.NewNotFound(resource, key.Name)
	case err != nil:
		// What cannot be understood is not known, like what was not gathered.
		c.note(Gap{Path: c.tree.Path(resource, key.Namespace, key.Name), Err: err})
		return apierrors.NewNotFound(resource, key.Name)
	}
	return fill(object, u)
}

// List implements client.Reader.
func (c *Client) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(list, clientgoscheme.Scheme)
	if err != nil {
		return fmt.Errorf("reading the must-gather: %w", err)
	}
	gvk.Kind = gvk.Kind[:len(gvk.Kind)-len("List")]
	options := (&client.ListOptions{}).ApplyOptions(opts)
	found := c.all(gvk, options.Namespace)
	found = slices.DeleteFunc(found, func(u unstructured.Unstructured) bool {
		return !selected(&u, options.LabelSelector, options.FieldSelector)
	})
	items := make([]runtime.Object, len(found))
	for i := range found {
		into, err := item(list, gvk)
		if err != nil {
			return err
		}
		if err := fill(into, &found[i]); err != nil {
			return err
		}
		items[i] = into
	}
	if err := meta.SetList(list, items); err != nil {
		return fmt.Errorf("reading the must-gather: %w", err)
	}
	return nil
}

// all reads the resource everywhere, or in one namespace.
func (c *Client) all(gvk schema.GroupVersionKind, namespace string) []unstructured.Unstructured {
	resource := c.resource(gvk)
	namespaces := []string{namespace}
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if namespace == "" && (err != nil || mapping.Scope.Name() == meta.RESTScopeNameNamespace) {
		namespaces = append(namespaces, c.tree.Namespaces()...)
	}
	var all []unstructured.Unstructured
	gathered := false
	for _, each := range namespaces {
		found, err := c.tree.List(resource, each)
		if err != nil {
			c.note(Gap{Path: c.tree.Path(resource, each, ""), Err: err})
		}
		gathered = gathered || c.tree.Gathered(resource, each)
		all = append(all, found...)
	}
	if !gathered && !c.mayBeUnserved(gvk) {
		c.note(Gap{Path: c.tree.Path(resource, namespace, "")})
	}
	return all
}

// mayBeUnserved says of kinds outside Kubernetes that a cluster may not have them, so that none of them is no gap.
func (c *Client) mayBeUnserved(gvk schema.GroupVersionKind) bool {
	return !clientgoscheme.Scheme.Recognizes(gvk)
}

func (c *Client) resource(gvk schema.GroupVersionKind) schema.GroupResource {
	resource, _ := meta.UnsafeGuessKindToResource(gvk)
	return resource.GroupResource()
}

// item is an empty item of the list.
func item(list client.ObjectList, gvk schema.GroupVersionKind) (client.Object, error) {
	switch list.(type) {
	case *unstructured.UnstructuredList:
		return &unstructured.Unstructured{}, nil
	case *metav1.PartialObjectMetadataList:
		return &metav1.PartialObjectMetadata{}, nil
	}
	made, err := clientgoscheme.Scheme.New(gvk)
	if err != nil {
		return nil, fmt.Errorf("reading the must-gather: %w", err)
	}
	object, ok := made.(client.Object)
	if !ok {
		return nil, fmt.Errorf("reading the must-gather: %s has no name", gvk.Kind)
	}
	return object, nil
}

func selected(u *unstructured.Unstructured, byLabel labels.Selector, byField fields.Selector) bool {
	if byLabel != nil && !byLabel.Matches(labels.Set(u.GetLabels())) {
		return false
	}
	if byField == nil {
		return true
	}
	for _, wanted := range byField.Requirements() {
		value, _, err := unstructured.NestedString(u.Object, strings.Split(wanted.Field, ".")...)
		if err != nil || value != wanted.Value {
			return false
		}
	}
	return true
}

// fill decodes into what a caller reads with. A Secret is only ever known to be there: what is in it stays unread.
func fill(into client.Object, from *unstructured.Unstructured) error {
	if from.GetKind() == "Secret" {
		from = from.DeepCopy()
		delete(from.Object, "data")
		delete(from.Object, "stringData")
	}
	if u, ok := into.(*unstructured.Unstructured); ok {
		u.Object = from.DeepCopy().Object
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, into); err != nil {
		return fmt.Errorf("decoding %s %s of the must-gather: %w", from.GetKind(), client.ObjectKeyFromObject(from), err)
	}
	return nil
}
