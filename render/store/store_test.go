// SPDX-License-Identifier: Apache-2.0

//go:build go1.26

package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/solonode/sno/render/store"
)

func configMap(namespace, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"of": name}}, Data: data}
}

func other(apiVersion, kind, namespace, name string, fields map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: fields}
	if fields == nil {
		object.Object = map[string]any{}
	}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

func TestNew(t *testing.T) {
	for _, test := range []struct {
		name     string
		objects  []runtime.Object
		is       error
		contains []string
	}{
		{name: "empty"},
		{name: "same name in two namespaces", objects: []runtime.Object{configMap("a", "x", nil), configMap("b", "x", nil)}},
		{name: "same name of two kinds", objects: []runtime.Object{configMap("a", "x", nil), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "x"}}}},
		{name: "twice", objects: []runtime.Object{configMap("a", "x", nil), configMap("a", "x", nil)}, is: store.ErrDuplicate, contains: []string{"configmaps a/x"}},
		{
			name: "typed and unstructured", objects: []runtime.Object{configMap("a", "x", nil), other("v1", "ConfigMap", "a", "x", nil)},
			is: store.ErrDuplicate, contains: []string{"configmaps a/x"},
		},
		{
			name: "twice of an unknown kind", objects: []runtime.Object{other("example.org/v1", "Thing", "a", "x", nil), other("example.org/v1", "Thing", "a", "x", nil)},
			is: store.ErrDuplicate, contains: []string{"Thing a/x"},
		},
		{name: "two of an unknown kind", objects: []runtime.Object{other("example.org/v1", "Thing", "a", "x", nil), other("example.org/v1", "Thing", "a", "y", nil)}},
		{name: "unknown field", objects: []runtime.Object{other("v1", "ConfigMap", "a", "x", map[string]any{"date": map[string]any{}})}, contains: []string{"ConfigMap a/x", "date"}},
		{name: "wrong type of a field", objects: []runtime.Object{other("v1", "ConfigMap", "a", "x", map[string]any{"data": "text"})}, contains: []string{"ConfigMap a/x", "map from string"}},
		{name: "unknown type", objects: []runtime.Object{&metav1.PartialObjectMetadata{}}, contains: []string{"PartialObjectMetadata", "unknown"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := store.New(test.objects...)
			if test.is == nil && len(test.contains) == 0 && err != nil {
				t.Fatal(err)
			}
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("got %v, want %v", err, test.is)
			}
			for _, part := range test.contains {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
		})
	}
}

// Objects are ordered, typed if the kind is known, with apiVersion and kind.
func TestObjects(t *testing.T) {
	scheduler := &operatorv1.KubeScheduler{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	scheduler.Status.LatestAvailableRevision = 3
	s := newStore(t,
		scheduler,
		other("example.org/v1", "Thing", "", "z", map[string]any{"spec": map[string]any{"a": "b"}}),
		other("v1", "Secret", "b", "x", map[string]any{"stringData": map[string]any{"k": "v"}}),
		configMap("b", "x", nil), configMap("a", "y", nil), configMap("a", "x", nil),
		&operatorv1.Etcd{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}},
		&configv1.APIServer{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}},
		configMap("a", "gone", nil),
	)
	if err := s.Session("loop", store.ConfigMaps("a", "*")...).Kube().CoreV1().ConfigMaps("a").Delete(t.Context(), "gone", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	objects, err := s.Objects()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, object := range objects {
		m := object.(metav1.Object)
		got = append(got, fmt.Sprintf("%s %s/%s %T", object.GetObjectKind().GroupVersionKind(), m.GetNamespace(), m.GetName(), object))
	}
	want := []string{
		"/v1, Kind=ConfigMap a/x *v1.ConfigMap",
		"/v1, Kind=ConfigMap a/y *v1.ConfigMap",
		"/v1, Kind=ConfigMap b/x *v1.ConfigMap",
		"/v1, Kind=Secret b/x *v1.Secret",
		"config.openshift.io/v1, Kind=APIServer /cluster *v1.APIServer",
		"example.org/v1, Kind=Thing /z *unstructured.Unstructured",
		"operator.openshift.io/v1, Kind=Etcd /cluster *v1.Etcd",
		"operator.openshift.io/v1, Kind=KubeScheduler /cluster *v1.KubeScheduler",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	secret := objects[3].(*corev1.Secret)
	if string(secret.Data["k"]) != "v" || secret.StringData != nil || secret.Type != corev1.SecretTypeOpaque {
		t.Errorf("the secret is %v", secret)
	}
	if got := objects[7].(*operatorv1.KubeScheduler).Status.LatestAvailableRevision; got != 3 {
		t.Errorf("the status of an input has revision %d", got)
	}
}

func TestAddMissing(t *testing.T) {
	s := newStore(t, configMap("ns", "a", map[string]string{"k": "v"}), other("example.org/v1", "Thing", "", "z", map[string]any{"k": "v"}))
	if err := s.AddMissing(configMap("ns", "a", map[string]string{"k": "w"}), configMap("ns", "b", nil), other("example.org/v1", "Thing", "", "z", map[string]any{"k": "w"})); err != nil {
		t.Fatal(err)
	}
	objects, err := s.Objects()
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 3 || objects[0].(*corev1.ConfigMap).Data["k"] != "v" || objects[2].(*unstructured.Unstructured).Object["k"] != "v" {
		t.Errorf("the objects are %v", objects)
	}
	if err := s.AddMissing(other("v1", "ConfigMap", "ns", "c", map[string]any{"date": "x"})); err == nil {
		t.Error("an unknown field was added")
	}
}

// Changes of objects outside of the store do not change the store.
func TestCopies(t *testing.T) {
	given := configMap("ns", "given", map[string]string{"k": "v"})
	unknown := other("example.org/v1", "Thing", "", "z", map[string]any{"spec": map[string]any{"k": "v"}})
	s := newStore(t, given, unknown)
	session := s.Session("loop", store.ConfigMaps("ns", "*")...)
	c := session.Kube().CoreV1().ConfigMaps("ns")
	sent := configMap("ns", "sent", map[string]string{"k": "v"})
	created, err := c.Create(t.Context(), sent, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	snapshot := func() []byte {
		objects, err := s.Objects()
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		for _, object := range objects {
			fmt.Fprintf(&text, "%v\n", object)
		}
		return text.Bytes()
	}
	before := snapshot()

	given.Data["k"], sent.Data["k"], created.Data["k"] = "w", "w", "w"
	unknown.Object["spec"].(map[string]any)["k"] = "w"
	got, err := c.Get(t.Context(), "sent", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got.Data["k"] = "w"
	list, err := c.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range list.Items {
		item.Data["k"] = "w"
	}
	objects, err := s.Objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		object.(metav1.Object).SetName("w")
		switch object := object.(type) {
		case *corev1.ConfigMap:
			object.Data["k"] = "w"
		case *unstructured.Unstructured:
			object.Object["spec"].(map[string]any)["k"] = "w"
		}
	}
	if after := snapshot(); !bytes.Equal(before, after) {
		t.Errorf("the store has changed (-before +after):\n%s", cmp.Diff(string(before), string(after)))
	}
}

func TestRecreatedObjectHasNewUID(t *testing.T) {
	session := newStore(t).Session("loop", store.ConfigMaps("ns", "*")...)
	first := create(t, session, "ns", "a")
	if err := session.Kube().CoreV1().ConfigMaps("ns").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if second := create(t, session, "ns", "a"); second.UID == first.UID || second.ResourceVersion == first.ResourceVersion {
		t.Errorf("both have the uid %s and the versions %s and %s", second.UID, first.ResourceVersion, second.ResourceVersion)
	}
}

// A RawExtension is read as bytes, as from an API server.
func TestRawExtension(t *testing.T) {
	observed := runtime.RawExtension{Object: &unstructured.Unstructured{Object: map[string]any{"a": "b"}}}
	given := &operatorv1.KubeScheduler{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	given.Spec.ObservedConfig = observed
	c := newStore(t, given).Session("loop", store.Patterns("operator.openshift.io", "kubeschedulers", "", "cluster")...).Operator().OperatorV1().KubeSchedulers()
	read := func(want string) *operatorv1.KubeScheduler {
		found, err := c.Get(t.Context(), "cluster", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(found.Spec.ObservedConfig.Raw); got != want || found.Spec.ObservedConfig.Object != nil {
			t.Errorf("got %s, want %s", got, want)
		}
		return found
	}
	found := read(`{"a":"b"}`)
	found.Spec.ObservedConfig = runtime.RawExtension{Object: &unstructured.Unstructured{Object: map[string]any{"c": "d"}}}
	if _, err := c.Update(t.Context(), found, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	read(`{"c":"d"}`)
}

func TestConcurrent(t *testing.T) {
	s := newStore(t, configMap("ns", "shared", nil))
	const goroutines, each = 4, 5
	var wg sync.WaitGroup
	for g := range goroutines {
		session := s.Session(fmt.Sprintf("loop %d", g), store.ConfigMaps("ns", "*")...)
		wg.Go(func() {
			c := session.Kube().CoreV1().ConfigMaps("ns")
			for i := range each {
				key := fmt.Sprintf("%d-%d", g, i)
				if err := retry.RetryOnConflict(wait.Backoff{Steps: math.MaxInt}, func() error {
					shared, err := c.Get(t.Context(), "shared", metav1.GetOptions{})
					if err != nil {
						return err
					}
					metav1.SetMetaDataAnnotation(&shared.ObjectMeta, key, "v")
					_, err = c.Update(t.Context(), shared, metav1.UpdateOptions{})
					return err
				}); err != nil {
					t.Error(err)
					return
				}
				if _, err := c.Create(t.Context(), configMap("ns", key, nil), metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
				session.StaleReads()
				session.Wrote()
				session.NotFound()
				if _, err := s.Objects(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	objects, err := s.Objects()
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 1+goroutines*each {
		t.Errorf("there are %d objects", len(objects))
	}
	shared, err := s.Session("reader").Kube().CoreV1().ConfigMaps("ns").Get(t.Context(), "shared", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(shared.Annotations) != goroutines*each {
		t.Errorf("of %d writes %d are stored", goroutines*each, len(shared.Annotations))
	}
}

// A change of only the order of managers is no write: here an update with another status.
func TestManagersInAnotherOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheduler := &operatorv1.KubeScheduler{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
		scheduler.Spec.ManagementState = operatorv1.Managed // Managers are recorded only if there are some already.
		s := newStore(t, scheduler)
		c := s.Session("loop", store.Patterns("operator.openshift.io", "kubeschedulers", "", "cluster")...).Operator().OperatorV1().KubeSchedulers()
		get := func() *operatorv1.KubeScheduler {
			<-time.After(time.Second) // Managers are ordered by their times.
			found, err := c.Get(t.Context(), "cluster", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return found
		}
		update := func() int64 {
			changed := get()
			changed.Status.LatestAvailableRevision = 9
			if _, err := c.Update(t.Context(), changed, metav1.UpdateOptions{FieldManager: "one"}); err != nil {
				t.Fatal(err)
			}
			return s.Version()
		}
		update()
		changed := get()
		changed.Status.ReadyReplicas = 1
		if _, err := c.UpdateStatus(t.Context(), changed, metav1.UpdateOptions{FieldManager: "two"}); err != nil {
			t.Fatal(err)
		}
		settled := s.Version()
		for range 2 {
			if version := update(); version != settled {
				t.Errorf("nothing has changed, but the version went from %d to %d", settled, version)
			}
		}
	})
}

// The same writes give the same uids, versions and times, and with the same random numbers the same generated names.
func TestSameWritesSameObjects(t *testing.T) {
	var runs [2][]runtime.Object
	for i := range runs {
		synctest.Test(t, func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, 1)
			s := newStore(t, configMap("ns", "a", nil))
			session := s.Session("loop", store.ConfigMaps("ns", "*")...)
			create(t, session, "ns", "b")
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
			create(t, session, "ns", "b")
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
