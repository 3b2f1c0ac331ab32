// SPDX-License-Identifier: Apache-2.0

//go:build go1.26

package rendertest_test

import (
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solonode/sno/render/store"
)

func create(t *testing.T, s *store.Session, name string) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	if _, err := s.Kube().CoreV1().ConfigMaps("ns").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// The same writes give the same uids, versions and times, and with the same random numbers the same generated names. It
// is not in package store, because connections to an API server read random numbers, which this test fixes for the
// process.
func TestSameWritesSameObjects(t *testing.T) {
	var runs [2][]runtime.Object
	for i := range runs {
		synctest.Test(t, func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, 1)
			s, err := store.New(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
			if err != nil {
				t.Fatal(err)
			}
			session := s.Session("loop", store.ConfigMaps("ns", "*")...)
			create(t, session, "b")
			c := session.Kube().CoreV1().ConfigMaps("ns")
			generated, err := c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "c-"}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if name := generated.Name; len(name) != len("c-")+5 || !strings.HasPrefix(name, "c-") {
				t.Errorf("the generated name is %q", name)
			}
			if err := c.Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			create(t, session, "b")
			if runs[i], err = s.Objects(); err != nil {
				t.Fatal(err)
			}
		})
	}
	if diff := cmp.Diff(runs[0], runs[1]); diff != "" {
		t.Errorf("two runs differ (-first +second):\n%s", diff)
	}
	uids := map[types.UID]bool{}
	for _, object := range runs[0] {
		uids[object.(metav1.Object).GetUID()] = true
	}
	if len(uids) != 3 {
		t.Errorf("three objects have the uids %v", uids)
	}
}
