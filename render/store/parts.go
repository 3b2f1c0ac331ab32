package store

import (
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// statusOf returns a copy of the status of an object, or nil if its kind has none.
func statusOf(object runtime.Object) any {
	field := statusField(object.DeepCopyObject())
	if !field.IsValid() {
		return nil
	}
	return field.Interface()
}

// setStatus sets the status, nil for an empty one.
func setStatus(object runtime.Object, status any) {
	field := statusField(object)
	switch {
	case !field.IsValid():
	case status == nil:
		field.SetZero()
	default:
		field.Set(reflect.ValueOf(status))
	}
}

func statusField(object runtime.Object) reflect.Value {
	return reflect.ValueOf(object).Elem().FieldByName("Status")
}

// set gives object the content of another of the same type.
func assign(object, other runtime.Object) {
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(other).Elem())
}

// desired returns an object without metadata and status: what generation counts the changes of.
func desired(object runtime.Object) runtime.Object {
	object = object.DeepCopyObject()
	setStatus(object, nil)
	value := reflect.ValueOf(object).Elem()
	value.FieldByName("ObjectMeta").SetZero()
	return object
}

// hasStatus reports whether status is a subresource of the kind, so that only requests to it change it.
func hasStatus(p *part, resource schema.GroupVersionResource) bool {
	object := p.new(resource)
	return object != nil && statusField(object).IsValid()
}

// counts reports whether an API server counts the generations of the kind: of all that have a status, but for Namespaces, Nodes,
// Services and volumes of the core group.
func hasGeneration(p *part, resource schema.GroupVersionResource) bool {
	if resource.Group == "" {
		return resource.Resource == "pods" || resource.Resource == "replicationcontrollers"
	}
	return hasStatus(p, resource)
}

// new returns an empty object of the resource.
func (p *part) new(resource schema.GroupVersionResource) runtime.Object {
	gvk, err := p.mapper.KindFor(resource)
	if err != nil {
		return nil
	}
	object, err := p.scheme.New(gvk)
	if err != nil {
		return nil
	}
	return object
}

// replace puts an object as it is in the place of the one of the same name.
func (p *part) replace(resource schema.GroupVersionResource, object runtime.Object) error {
	m := metadata(object)
	if err := p.tracker.Delete(resource, m.GetNamespace(), m.GetName()); err != nil {
		return err
	}
	return p.tracker.Add(object)
}

// transmit returns a copy of an object as an API server gets it, through JSON: what a RawExtension has as an object it has as bytes
// then, and empty is not told from absent (U-REN-38).
func (p *part) roundTrip(object runtime.Object) (runtime.Object, error) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	received := reflect.New(reflect.TypeOf(object).Elem()).Interface().(runtime.Object)
	if err := json.Unmarshal(encoded, received); err != nil {
		return nil, err
	}
	return received, nil
}
