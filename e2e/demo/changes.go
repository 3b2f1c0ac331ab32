// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/testcluster/scenario"
)

type patched struct {
	module framework.Module
	kind   schema.GroupVersionKind
	key    client.ObjectKey
}

func (p patched) String() string { return strings.ToLower(p.kind.Kind) + "/" + p.key.Name }

// patchedObjects returns these objects. Console and the OAuth servers are not included: their operators vendor the
// modules here.
func (j *job) patchedObjects() []patched {
	objects := []patched{
		{framework.Console, configv1.GroupVersion.WithKind("ClusterVersion"), client.ObjectKey{Name: "version"}},
		{framework.Console, appsv1.SchemeGroupVersion.WithKind("Deployment"), client.ObjectKey{Namespace: scenario.ConsoleNamespace, Name: "downloads"}},
	}
	if j.scenario.Pool != scenario.PoolNone {
		objects = append([]patched{{
			framework.Ingress, operatorv1.GroupVersion.WithKind("IngressController"),
			client.ObjectKey{Namespace: scenario.OperatorNamespace, Name: scenario.DefaultIngressController},
		}}, objects...)
	}
	return objects
}

func (j *job) expectsPatch(module framework.Module) bool {
	if module == framework.Ingress {
		return j.scenario.Pool == scenario.PoolMaster
	}
	return j.scenario.ControlPlaneTopology == configv1.SingleReplicaTopologyMode
}

func (j *job) read(ctx context.Context) (map[patched]*unstructured.Unstructured, error) {
	objects := map[patched]*unstructured.Unstructured{}
	for _, p := range j.patchedObjects() {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(p.kind)
		if err := j.kube.Get(ctx, p.key, live); err != nil {
			return nil, fmt.Errorf("read %s: %w", p, err)
		}
		objects[p] = live
	}
	return objects, nil
}

// showChanges prints the fields that the controllers own now and their former values, from the objects themselves.
func (j *job) showChanges(before, after map[patched]*unstructured.Unstructured) error {
	j.heading("What they changed")
	for _, p := range j.patchedObjects() {
		own, err := changes(p, before[p], after[p])
		switch {
		case err != nil:
			return err
		case j.options.Operators.Has(p.module): // what is left to the controller depends on the operator
		case len(own) > 0 && !j.expectsPatch(p.module):
			return fmt.Errorf("%w: nothing is to be patched, but the %s controller owns %v", ErrVerificationFailed, p.module, own)
		case len(own) == 0 && j.expectsPatch(p.module):
			return fmt.Errorf("%w: the %s controller reports success but owns no field of %s", ErrVerificationFailed, p.module, p)
		}
		j.printf("  %s, by the %s controller: %d field(s)", p, p.module, len(own))
		for _, line := range own {
			j.printf("    %s", line)
		}
	}
	return nil
}

// changes returns the fields of an object that its controller owns, without its own bookkeeping. They include fields
// whose value is unchanged.
func changes(p patched, before, after *unstructured.Unstructured) (lines []string, err error) {
	owned, err := ownership.Applied(after, p.module.FieldOwner(), "")
	if err != nil {
		return nil, fmt.Errorf("read the owners of %s: %w", p, err)
	}
	seen := map[string]bool{patch.ReplacedAnnotation(string(p.module)): true}
	owned.Leaves().Iterate(func(path fieldpath.Path) {
		var names []string // up to a list
		for _, element := range path {
			if element.FieldName == nil {
				break
			}
			names = append(names, *element.FieldName)
		}
		field := "." + strings.Join(names, ".")
		if seen[field] || seen[names[len(names)-1]] {
			return
		}
		seen[field] = true
		lines = append(lines, fmt.Sprintf("%s: %s, was %s", field, value(after, names), value(before, names)))
	})
	return lines, nil
}

func value(object *unstructured.Unstructured, names []string) string {
	value, found, err := unstructured.NestedFieldNoCopy(object.Object, names...)
	if err != nil || !found {
		return ownership.None
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
