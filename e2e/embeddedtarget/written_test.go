// SPDX-License-Identifier: Apache-2.0

package embeddedtarget

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/testcluster/embedded"
)

// TestControlsOnCluster makes the change of every control of every static check on a real cluster without operators,
// and repeats the check.
func TestControlsOnCluster(t *testing.T) {
	t.Parallel()
	names := []string{"none-sno-day2-workers", "ha"}
	if testing.Short() {
		names = names[:1]
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			s, err := start(ctx, options(name, SNO))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Stop()
			if err := s.freeze(ctx); err != nil {
				t.Fatal(err)
			}
			w := written{T: t, ctx: ctx, kube: s.Cluster.Client()}
			w.before = w.read()
			for _, check := range catalogue.All() {
				if check.Tier == catalogue.Static && (check.NotApplicable == nil || check.NotApplicable(w.before) == "") {
					w.controls(check)
				}
			}
		})
	}
}

func (s *system) freeze(ctx context.Context) error {
	if err := s.StopOperators(ctx); err != nil {
		return err
	}
	for _, name := range []string{embedded.Scheduler, embedded.Kubelets, embedded.ControllerManager} {
		if err := s.Cluster.Component(name).Kill(); err != nil {
			return err
		}
	}
	return nil
}

// controlNamespace is for additional objects of controls.
const controlNamespace = "openshift-control"

// impossible are changes that the API server now refuses or reverts, because the field has an enumeration and a
// default.
var impossible = map[string]bool{"an unknown topology": true, "no topology": true}

type written struct {
	*testing.T
	ctx    context.Context //nolint:containedctx // of the test
	kube   client.Client
	before *catalogue.State
}

func (w written) read() *catalogue.State {
	w.Helper()
	state, err := cluster.Read(w.ctx, w.kube, append(cluster.PayloadNamespaces(), controlNamespace))
	if err != nil {
		w.Fatal(err)
	}
	return state
}

func (w written) controls(check catalogue.Check) {
	w.Helper()
	negative, positive := 0, 0
	for _, control := range check.Controls {
		changed := &catalogue.Input{State: w.before.DeepCopy()}
		if !control.Change(changed) || impossible[control.Name] {
			continue
		}
		err := w.write(w.before, changed.State)
		now := w.read()
		if err != nil {
			w.Fatalf("%s, %q: make it: %v", check.ID, control.Name, err)
		}
		evidence, err := check.Run(&catalogue.Input{State: now})
		if held := holds(evidence); err != nil || held != control.MustPass {
			w.Errorf("%s, %q: held %t (%v), want %t: %+v", check.ID, control.Name, held, err, control.MustPass, evidence)
		}
		if control.MustPass {
			positive++
		} else {
			negative++
		}
		if err := w.write(now, w.before); err != nil {
			w.Fatalf("%s, %q: revert it: %v", check.ID, control.Name, err)
		}
		w.before = w.read()
	}
	if negative == 0 || positive == 0 {
		w.Errorf("%s: %d negative and %d positive controls are possible on a cluster", check.ID, negative, positive)
	}
}

func holds(evidence []report.Evidence) bool {
	for _, e := range evidence {
		if !e.Held {
			return false
		}
	}
	return len(evidence) > 0
}

func (w written) write(from, to *catalogue.State) error {
	was, is := objects(from), objects(to)
	for key, object := range was {
		if is[key] == nil {
			if err := w.kube.Delete(w.ctx, object, client.GracePeriodSeconds(0)); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	for key, object := range is {
		switch {
		case was[key] == nil:
			if err := w.create(object); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		case !same(was[key], object):
			if err := w.update(object); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	return nil
}

// same compares objects and their field managers, without values that the API server sets.
func same(a, b client.Object) bool {
	a, b = bare(a), bare(b)
	return reflect.DeepEqual(a, b)
}

func bare(object client.Object) client.Object {
	c, _ := object.DeepCopyObject().(client.Object)
	c.SetResourceVersion("")
	c.SetUID("")
	c.SetGeneration(0)
	c.SetCreationTimestamp(metav1.Time{})
	var managers []metav1.ManagedFieldsEntry
	for _, entry := range c.GetManagedFields() {
		entry.Time = nil
		managers = append(managers, entry)
	}
	c.SetManagedFields(managers)
	return c
}

func (w written) create(object client.Object) error {
	fresh, _ := object.DeepCopyObject().(client.Object)
	fresh.SetResourceVersion("")
	fresh.SetUID("")
	if fresh.GetNamespace() != "" {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fresh.GetNamespace()}}
		if err := w.kube.Create(w.ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	if pod, ok := fresh.(*corev1.Pod); ok {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "default"}}
		if err := w.kube.Create(w.ctx, account); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		// The API server defaults these, but refuses them from clients.
		pod.Spec.Affinity, pod.Spec.TopologySpreadConstraints = nil, nil
		if len(pod.Spec.Containers) == 0 { // the control only has what the check reads
			pod.Spec.Containers = []corev1.Container{{Name: "control", Image: "control"}}
		}
	}
	return w.both(fresh, w.kube.Create(w.ctx, fresh), object)
}

// update writes spec and metadata, then the status. A pod cannot move, so it is replaced.
func (w written) update(object client.Object) error {
	live, _ := object.DeepCopyObject().(client.Object)
	if err := w.kube.Get(w.ctx, client.ObjectKeyFromObject(object), live); err != nil {
		return err
	}
	fresh, _ := object.DeepCopyObject().(client.Object)
	fresh.SetResourceVersion(live.GetResourceVersion())
	fresh.SetUID(live.GetUID())
	err := w.kube.Update(w.ctx, fresh)
	if _, pod := object.(*corev1.Pod); pod && apierrors.IsInvalid(err) {
		if err := w.kube.Delete(w.ctx, live, client.GracePeriodSeconds(0)); err != nil {
			return err
		}
		return w.create(object)
	}
	return w.both(fresh, err, object)
}

func (w written) both(fresh client.Object, err error, object client.Object) error {
	if err != nil {
		return err
	}
	status, _ := object.DeepCopyObject().(client.Object)
	status.SetResourceVersion(fresh.GetResourceVersion())
	status.SetUID(fresh.GetUID())
	if err := w.kube.Status().Update(w.ctx, status); err != nil && !apierrors.IsNotFound(err) { // not every kind has one
		return err
	}
	return nil
}

func objects(s *catalogue.State) map[string]client.Object {
	all := map[string]client.Object{}
	value := reflect.ValueOf(s).Elem()
	for i := range value.NumField() {
		field, kind := value.Field(i), value.Type().Field(i).Name
		add := func(object client.Object) {
			object, _ = object.DeepCopyObject().(client.Object)
			all[kind+" "+client.ObjectKeyFromObject(object).String()] = object
		}
		switch field.Kind() {
		case reflect.Pointer:
			if object, ok := field.Interface().(client.Object); ok && !field.IsNil() {
				add(object)
			}
		case reflect.Slice:
			for j := range field.Len() {
				if object, ok := field.Index(j).Addr().Interface().(client.Object); ok {
					add(object)
				}
			}
		}
	}
	return all
}
