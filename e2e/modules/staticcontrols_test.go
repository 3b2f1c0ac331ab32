// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"fmt"
	"reflect"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/e2e/embeddedtarget"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/testcluster/embedded"
)

// controlNamespace is for additional objects of controls.
const controlNamespace = "openshift-control"

// impossible are changes that the API server now refuses or reverts, because the field has an enumeration and a
// default.
var impossible = map[string]bool{"an unknown topology": true, "no topology": true}

var _ = DescribeTable("Every control of every static check changes its verdict, on a real cluster without operators",
	func(ctx SpecContext, name string) {
		s := startSystem(ctx, patient(name, embeddedtarget.SNO))
		Expect(s.StopOperators(ctx)).To(Succeed())
		for _, name := range []string{embedded.Scheduler, embedded.Kubelets, embedded.ControllerManager} {
			Expect(s.Cluster.Component(name).Kill()).To(Succeed())
		}
		before := s.read()
		for _, check := range catalogue.All() {
			if check.Tier == catalogue.Static && (check.NotApplicable == nil || check.NotApplicable(before) == "") {
				before = s.controls(check, before)
			}
		}
	},
	Entry("of one node", Label(suite.Long), "none-sno-day2-workers"),
	Entry("that is highly available", Label(suite.Long), "ha"),
)

func (s *system) read() *catalogue.State {
	GinkgoHelper()
	return suite.Must(cluster.Read(s.ctx, s.kube, append(cluster.PayloadNamespaces(), controlNamespace)))
}

// controls makes the change of each control and repeats the check. It returns the objects when all are reverted.
func (s *system) controls(check catalogue.Check, before *catalogue.State) *catalogue.State {
	GinkgoHelper()
	possible := map[bool]int{}
	for _, control := range check.Controls {
		changed := &catalogue.Input{State: before.DeepCopy()}
		if !control.Change(changed) || impossible[control.Name] {
			continue
		}
		Expect(s.write(before, changed.State)).To(Succeed(), "%s, make %q", check.ID, control.Name)
		now := s.read()
		evidence := suite.Must(check.Run(&catalogue.Input{State: now}))
		Expect(holds(evidence)).To(Equal(control.MustPass), "%s, %q: %+v", check.ID, control.Name, evidence)
		possible[control.MustPass]++
		Expect(s.write(now, before)).To(Succeed(), "%s, revert %q", check.ID, control.Name)
		before = s.read()
	}
	Expect(possible).To(And(HaveKey(true), HaveKey(false)), "%s has negative and positive controls that are possible on a cluster", check.ID)
	return before
}

func holds(evidence []report.Evidence) bool {
	for _, e := range evidence {
		if !e.Held {
			return false
		}
	}
	return len(evidence) > 0
}

func (s *system) write(from, to *catalogue.State) error {
	was, is := objects(from), objects(to)
	for key, object := range was {
		if is[key] == nil {
			if err := s.kube.Delete(s.ctx, object, client.GracePeriodSeconds(0)); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	for key, object := range is {
		switch {
		case was[key] == nil:
			if err := s.createAgain(object); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		case !same(was[key], object):
			if err := s.update(object); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	return nil
}

// same compares objects and their field managers, without values that the API server sets.
func same(a, b client.Object) bool {
	return cmp.Equal(a, b, cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion", "UID", "Generation", "CreationTimestamp"),
		cmpopts.IgnoreFields(metav1.ManagedFieldsEntry{}, "Time"))
}

func (s *system) createAgain(object client.Object) error {
	fresh, _ := object.DeepCopyObject().(client.Object)
	fresh.SetResourceVersion("")
	fresh.SetUID("")
	if fresh.GetNamespace() != "" {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fresh.GetNamespace()}}
		if err := s.kube.Create(s.ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	if pod, ok := fresh.(*corev1.Pod); ok {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "default"}}
		if err := s.kube.Create(s.ctx, account); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		// The API server defaults these, but refuses them from clients.
		pod.Spec.Affinity, pod.Spec.TopologySpreadConstraints = nil, nil
		if len(pod.Spec.Containers) == 0 { // the control only has what the check reads
			pod.Spec.Containers = []corev1.Container{{Name: "control", Image: "control"}}
		}
	}
	return s.both(fresh, s.kube.Create(s.ctx, fresh), object)
}

// update writes spec and metadata, then the status. A pod cannot move, so it is replaced.
func (s *system) update(object client.Object) error {
	live, _ := object.DeepCopyObject().(client.Object)
	if err := s.kube.Get(s.ctx, client.ObjectKeyFromObject(object), live); err != nil {
		return err
	}
	fresh, _ := object.DeepCopyObject().(client.Object)
	fresh.SetResourceVersion(live.GetResourceVersion())
	fresh.SetUID(live.GetUID())
	err := s.kube.Update(s.ctx, fresh)
	if _, pod := object.(*corev1.Pod); pod && apierrors.IsInvalid(err) {
		if err := s.kube.Delete(s.ctx, live, client.GracePeriodSeconds(0)); err != nil {
			return err
		}
		return s.createAgain(object)
	}
	return s.both(fresh, err, object)
}

func (s *system) both(fresh client.Object, err error, object client.Object) error {
	if err != nil {
		return err
	}
	status, _ := object.DeepCopyObject().(client.Object)
	status.SetResourceVersion(fresh.GetResourceVersion())
	status.SetUID(fresh.GetUID())
	if err := s.kube.Status().Update(s.ctx, status); err != nil && !apierrors.IsNotFound(err) { // not every kind has one
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
