package manager

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/topology"
)

// reader finds nothing of kinds that are not served. The cache would wait for them for ever.
type reader struct {
	client.Reader
	absent []schema.GroupVersionKind
	// decoded is what Read decoded last; nil for a reader that is used once.
	decoded *decoded
}

// decoded is the version of each object that Read decoded last. A look reads everything, and most of it has not changed since the one before; to decode that
// again takes more than all decisions together.
type decoded struct {
	mu   sync.Mutex
	last map[Object]version
}

// version is an object at one resourceVersion, at which it is the same whoever reads it.
type version struct {
	uid             types.UID
	resourceVersion string
	typed           any
}

func (d *decoded) recall(o Object, live *unstructured.Unstructured) any {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.last[o]; known.resourceVersion != "" && known.uid == live.GetUID() && known.resourceVersion == live.GetResourceVersion() {
		return known.typed
	}
	return nil
}

func (d *decoded) keep(o Object, live *unstructured.Unstructured, typed any) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last == nil {
		d.last = map[Object]version{}
	}
	d.last[o] = version{live.GetUID(), live.GetResourceVersion(), typed}
}

// Get implements client.Reader.
func (r reader) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if gvk := object.GetObjectKind().GroupVersionKind(); slices.Contains(r.absent, gvk) {
		return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
	}
	return r.Reader.Get(ctx, key, object, opts...)
}

// List implements client.Reader.
func (r reader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	gvk := list.GetObjectKind().GroupVersionKind()
	if slices.ContainsFunc(r.absent, func(kind schema.GroupVersionKind) bool { return kind.GroupVersion().WithKind(kind.Kind+"List") == gvk }) {
		return nil
	}
	return r.Reader.List(ctx, list, opts...)
}

// Read gets one object as it is and decoded; nil and nil without an error when there is none. What is decoded must not be changed: read from an
// Environment of a running process, it is the same one as long as the object is.
func Read[T any](ctx context.Context, from client.Reader, o Object) (*unstructured.Unstructured, *T, error) {
	live := o.Unstructured()
	if err := from.Get(ctx, o.Key(), live); apierrors.IsNotFound(err) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, fmt.Errorf("reading %s %s: %w", o.Kind, o.Key(), err)
	}
	r, _ := from.(reader)
	if typed, ok := r.decoded.recall(o, live).(*T); ok {
		return live, typed, nil
	}
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, typed); err != nil {
		return nil, nil, fmt.Errorf("decoding %s %s: %w", o.Kind, o.Key(), err)
	}
	r.decoded.keep(o, live, typed)
	return live, typed, nil
}

// Beside reads several things at the same time, and returns the error of the first that failed, in the order in which they are given.
// A decision of ten live reads, one after the other, spends most of a change of topology waiting for answers: everything on
// a single node reacts to the same change then, and the API server is slow. What must be read after something else is read after Beside.
func Beside(ctx context.Context, reads ...func(context.Context) error) error {
	errs := make([]error, len(reads))
	var reading sync.WaitGroup
	for i, read := range reads {
		reading.Go(func() { errs[i] = read(ctx) })
	}
	reading.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// LastTopology is the topology that was read last, which a failed read keeps (R-SNO-8). The zero value knows none yet.
// It is not safe for concurrent use.
type LastTopology struct {
	known *topology.Cluster
}

// Read reads the Infrastructure and returns what is known. A topology that cannot be understood, and an Infrastructure that is
// gone, leave the last one standing: a failed read never flips anything. It is nil before the first.
func (l *LastTopology) Read(ctx context.Context, from client.Reader) (*topology.Cluster, error) {
	live := Infrastructure.Unstructured()
	if err := from.Get(ctx, Infrastructure.Key(), live); apierrors.IsNotFound(err) {
		return l.known, nil
	} else if err != nil {
		return l.known, fmt.Errorf("reading %s %s: %w", Infrastructure.Kind, Infrastructure.Key(), err)
	}
	log := logr.FromContextOrDiscard(ctx)
	cluster, err := topology.FromUnstructured(live)
	switch {
	case err != nil:
		log.Error(err, "Topology cannot be read, keeping the last one")
	case l.known == nil || *l.known != cluster:
		l.known = &cluster
		log.Info("Topology read", "controlPlaneTopology", cluster.ControlPlane.Mode, "infrastructureTopology", cluster.Infrastructure.Mode,
			"platform", cluster.Platform, "findings", cluster.Findings())
	}
	return l.known, nil
}
