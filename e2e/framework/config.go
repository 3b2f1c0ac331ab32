// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ApplyConfig applies a kustomize folder of the repository as `kubectl apply -k` does, without some kinds.
func ApplyConfig(ctx context.Context, kube client.Client, folder string, except ...string) error {
	objects, err := RenderConfig(folder)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if slices.Contains(except, object.GetKind()) {
			continue
		}
		if err := Apply(ctx, kube, object); err != nil {
			return err
		}
	}
	return nil
}

// RenderConfig returns the objects of a kustomize folder, namespaces first.
func RenderConfig(folder string) ([]*unstructured.Unstructured, error) {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy
	rendered, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", folder, err)
	}
	var objects []*unstructured.Unstructured
	for _, resource := range rendered.Resources() {
		// Not from its map, whose numbers have other types than those of unstructured objects.
		text, err := resource.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("render %s: %w", folder, err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(text); err != nil {
			return nil, fmt.Errorf("render %s: %w", folder, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// Apply applies one object, as an installation does.
func Apply(ctx context.Context, kube client.Client, object *unstructured.Unstructured) error {
	name := object.GetKind() + " " + client.ObjectKeyFromObject(object).String()
	if err := kube.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("sno-rig"), client.ForceOwnership); err != nil {
		return fmt.Errorf("apply %s: %w", name, err)
	}
	return nil
}
