package plan

import (
	"context"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch"
)

// optedOut is a client on which every object seems to carry the opt-out annotation of a module: what a module does then is how it gives
// everything back. Nothing is annotated by that.
type optedOut struct {
	client.Client
	module string
}

// Get implements client.Reader.
func (o optedOut) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if err := o.Client.Get(ctx, key, object, opts...); err != nil {
		return err
	}
	o.annotate(object)
	return nil
}

// List implements client.Reader.
func (o optedOut) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := o.Client.List(ctx, list, opts...); err != nil {
		return err
	}
	switch all := list.(type) {
	case *unstructured.UnstructuredList:
		for i := range all.Items {
			o.annotate(&all.Items[i])
		}
	case *metav1.PartialObjectMetadataList:
		for i := range all.Items {
			o.annotate(&all.Items[i])
		}
	}
	return nil
}

func (o optedOut) annotate(object client.Object) {
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[patch.OptOutAnnotation] = o.module
	object.SetAnnotations(annotations)
}
