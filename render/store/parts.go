// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func statusOf(object runtime.Object) any {
	field := statusField(object.DeepCopyObject())
	if !field.IsValid() {
		return nil
	}
	return field.Interface()
}

// setStatus sets the status; nil empties it.
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

func assign(object, other runtime.Object) {
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(other).Elem())
}

// desired returns the part of an object whose changes increment the generation.
func desired(object runtime.Object) runtime.Object {
	object = object.DeepCopyObject()
	setStatus(object, nil)
	value := reflect.ValueOf(object).Elem()
	value.FieldByName("ObjectMeta").SetZero()
	return object
}

// hasStatus reports whether the kind has a status subresource.
func hasStatus(p *part, resource schema.GroupVersionResource) bool {
	object := p.new(resource)
	return object != nil && statusField(object).IsValid()
}

// hasGeneration reports whether an API server counts the generations of the kind.
func hasGeneration(p *part, resource schema.GroupVersionResource) bool {
	if resource.Group == "" {
		return resource.Resource == "pods" || resource.Resource == "replicationcontrollers"
	}
	return hasStatus(p, resource)
}

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

func (p *part) replace(resource schema.GroupVersionResource, object runtime.Object) error {
	m := metadata(object)
	if err := p.tracker.Delete(resource, m.GetNamespace(), m.GetName()); err != nil {
		return err
	}
	return p.tracker.Add(object)
}

// roundTrip returns a copy through JSON, as a server receives it: without empty values (U-REN-38).
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
