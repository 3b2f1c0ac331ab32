// SPDX-License-Identifier: Apache-2.0

package mustgather

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/cli/rehearsal"
)

// Client implements rehearsal.Base. It is safe for concurrent use.
type Client struct {
	files  fs.FS
	roots  []string
	mapper meta.RESTMapper

	mu   sync.Mutex
	gaps []string
}

// New returns a client that reads from the files, in which the must-gather may be some folders below.
func New(files fs.FS, mapper meta.RESTMapper) (*Client, error) {
	found, err := roots(files)
	if err != nil {
		return nil, err
	}
	return &Client{files: files, roots: found, mapper: mapper}, nil
}

// RESTMapper returns the mapper of New.
func (c *Client) RESTMapper() meta.RESTMapper { return c.mapper }

// Gaps returns objects and files that were read and are missing or corrupt.
func (c *Client) Gaps() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.gaps)
}

func (c *Client) addGap(gap string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.gaps, gap) {
		c.gaps = append(c.gaps, gap)
	}
}

func (c *Client) missing(file string) { c.addGap("not in the must-gather: " + file + ".yaml") }

// Get implements client.Reader.
func (c *Client) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(object, clientgoscheme.Scheme)
	if err != nil {
		return err
	}
	resource := rehearsal.Resource(gvk)
	found := c.read(resource, key.Namespace)
	if u := found.objects[key.Name]; u != nil {
		return rehearsal.Convert(u, object)
	}
	for _, f := range found.faults {
		if f.name == key.Name || f.name == "" {
			c.addGap(f.text)
		}
	}
	if !found.gathered {
		c.missing(base(resource, key.Namespace) + "/" + key.Name)
	}
	return apierrors.NewNotFound(resource, key.Name)
}

// List implements client.Reader.
func (c *Client) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(list, clientgoscheme.Scheme)
	if err != nil {
		return err
	}
	options := (&client.ListOptions{}).ApplyOptions(opts)
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(gvk)
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	resource, namespaces := rehearsal.Resource(gvk), []string{options.Namespace}
	if options.Namespace == "" {
		namespaces = append(namespaces, c.namespaces()...)
	}
	// A cluster may not serve kinds of other projects, so their absence is no gap.
	gathered := !clientgoscheme.Scheme.Recognizes(gvk)
	for _, namespace := range namespaces {
		found := c.read(resource, namespace)
		gathered = gathered || found.gathered
		for _, f := range found.faults {
			c.addGap(f.text)
		}
		for _, name := range slices.Sorted(maps.Keys(found.objects)) {
			if u := found.objects[name]; selected(u, options) {
				all.Items = append(all.Items, *u)
			}
		}
	}
	if !gathered {
		c.missing(base(resource, options.Namespace))
	}
	return rehearsal.Convert(all, list)
}

func selected(u *unstructured.Unstructured, by *client.ListOptions) bool {
	if by.LabelSelector != nil && !by.LabelSelector.Matches(labels.Set(u.GetLabels())) {
		return false
	}
	if by.FieldSelector == nil {
		return true
	}
	values := fields.Set{}
	for _, wanted := range by.FieldSelector.Requirements() {
		values[wanted.Field], _, _ = unstructured.NestedString(u.Object, strings.Split(wanted.Field, ".")...)
	}
	return by.FieldSelector.Matches(values)
}

var (
	errHolds = errors.New("holds")
	errForm  = errors.New("unexpected content")
)

// fault is a corrupt file. name is that of its object, empty for a list.
type fault struct{ name, text string }

type found struct {
	objects map[string]*unstructured.Unstructured
	faults  []fault
	// gathered reports whether missing objects are also missing in the cluster.
	gathered bool
}

func base(resource schema.GroupResource, namespace string) string {
	scope := clusterDir
	if namespace != "" {
		scope = path.Join(namespacesDir, namespace)
	}
	return path.Join(scope, cmp.Or(resource.Group, "core"), resource.Resource)
}

func (c *Client) namespaces() []string {
	var names []string
	for _, root := range c.roots {
		entries, _ := fs.ReadDir(c.files, path.Join(root, namespacesDir)) // a tree may have none
		for _, entry := range entries {
			if entry.IsDir() {
				names = append(names, entry.Name())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// read skips corrupt files. An object in a file of its own takes precedence over one in a list.
func (c *Client) read(resource schema.GroupResource, namespace string) found {
	out := found{objects: map[string]*unstructured.Unstructured{}}
	add := func(file, name string) {
		objects, err := parse(c.files, file, name == "")
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		out.gathered = true
		if name != "" && err == nil && (objects[0].GetName() != name || objects[0].GetNamespace() != namespace) {
			err = fmt.Errorf("%w %q in namespace %q", errHolds, objects[0].GetName(), objects[0].GetNamespace())
		}
		if err != nil {
			out.faults = append(out.faults, fault{name, fmt.Sprintf("corrupt file in the must-gather: %s: %v", file, err)})
			return
		}
		for _, object := range objects {
			if object.GetNamespace() == namespace && out.objects[object.GetName()] == nil {
				out.objects[object.GetName()] = &object
			}
		}
	}
	for _, root := range c.roots {
		folder := path.Join(root, base(resource, namespace))
		entries, err := fs.ReadDir(c.files, folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			out.faults = append(out.faults, fault{text: err.Error()})
		}
		out.gathered = out.gathered || err == nil
		for _, entry := range entries {
			if name, is := strings.CutSuffix(entry.Name(), ".yaml"); is && name != "" {
				add(path.Join(folder, entry.Name()), name)
			}
		}
		add(folder+".yaml", "")
	}
	return out
}

func parse(files fs.FS, file string, isList bool) ([]unstructured.Unstructured, error) {
	text, err := fs.ReadFile(files, file)
	if err != nil {
		return nil, err
	}
	object := unstructured.Unstructured{}
	if text, err = yaml.YAMLToJSON(text); err == nil {
		err = object.UnmarshalJSON(text)
	}
	if err != nil {
		return nil, err
	}
	if object.GetAPIVersion() == "" {
		return nil, fmt.Errorf("%w: no apiVersion", errForm)
	}
	objects := []unstructured.Unstructured{object}
	if isList {
		list, err := object.ToList()
		if err != nil || !strings.HasSuffix(object.GetKind(), "List") {
			return nil, fmt.Errorf("%w: not a list", errForm)
		}
		objects = list.Items
	}
	for i := range objects {
		if objects[i].GetKind() == "" { // the items of typed lists have no kind
			objects[i].SetAPIVersion(object.GetAPIVersion())
			objects[i].SetKind(strings.TrimSuffix(object.GetKind(), "List"))
		}
		if objects[i].GetName() == "" {
			return nil, fmt.Errorf("%w: object %d has no name", errForm, i)
		}
		if objects[i].GetKind() == "Secret" {
			delete(objects[i].Object, "data") // only the presence of a Secret matters
			delete(objects[i].Object, "stringData")
		}
	}
	return objects, nil
}
