// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	configapply "github.com/openshift/client-go/config/applyconfigurations"
	configfake "github.com/openshift/client-go/config/clientset/versioned/fake"
	operatorapply "github.com/openshift/client-go/operator/applyconfigurations"
	operatorfake "github.com/openshift/client-go/operator/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/sets"
	kubeapply "k8s.io/client-go/applyconfigurations"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// ErrDuplicate is returned by New for two objects of one kind and name.
var ErrDuplicate = errors.New("duplicate object")

// Store holds the objects (R-REN-5). It and the clients of its sessions are safe for concurrent use.
type Store struct {
	mu      sync.Mutex
	parts   []*part
	version int64
	// Objects of kinds that the clientsets do not know.
	others []*unstructured.Unstructured
	// The last write of each object, also of a deleted one.
	writes map[key]write
}

type write struct {
	// The session, or "" for objects of New.
	writer string
	// The resource in the version that the tracker stores.
	resource schema.GroupVersionResource
	deleted  bool
}

// part has the kinds of one clientset, whose schema server-side apply uses.
type part struct {
	groups  sets.Set[string]
	scheme  *runtime.Scheme
	mapper  meta.RESTMapper
	tracker clienttesting.ObjectTracker
	react   clienttesting.ReactionFunc
}

// New returns a store with the objects, typed or unstructured. Unstructured objects of known kinds are stored typed.
func New(objects ...runtime.Object) (*Store, error) {
	s := &Store{
		parts: []*part{
			// Separate, because each write iterates over all kinds of the scheme, and most writes are of this group.
			newPart(corev1.AddToScheme, kubeConverter),
			newPart(kubefake.AddToScheme, kubeConverter),
			newPart(configfake.AddToScheme, func(scheme *runtime.Scheme) managedfields.TypeConverter { return configapply.NewTypeConverter(scheme) }),
			newPart(operatorfake.AddToScheme, func(scheme *runtime.Scheme) managedfields.TypeConverter {
				return operatorapply.NewTypeConverter(scheme)
			}),
		},
		writes: map[key]write{},
	}
	for _, object := range objects {
		if err := s.add(object.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// AddMissing adds the objects that the store does not have.
func (s *Store) AddMissing(objects ...runtime.Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, object := range objects {
		if err := s.add(object.DeepCopyObject()); err != nil && !errors.Is(err, ErrDuplicate) {
			return err
		}
	}
	return nil
}

func kubeConverter(scheme *runtime.Scheme) managedfields.TypeConverter {
	return kubeapply.NewTypeConverter(scheme)
}

func newPart(register func(*runtime.Scheme) error, converter func(*runtime.Scheme) managedfields.TypeConverter) *part {
	scheme := runtime.NewScheme()
	if err := register(scheme); err != nil {
		panic(fmt.Sprintf("the types of a clientset cannot be registered: %v", err))
	}
	tracker := clienttesting.NewFieldManagedObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder(), converter(scheme))
	groups := sets.New[string]()
	for _, version := range scheme.PrioritizedVersionsAllGroups() {
		groups.Insert(version.Group)
	}
	return &part{
		groups:  groups,
		scheme:  scheme,
		mapper:  testrestmapper.TestOnlyStaticRESTMapper(scheme),
		tracker: tracker,
		react:   clienttesting.ObjectReaction(tracker),
	}
}

func (s *Store) part(group string) *part {
	for _, p := range s.parts {
		// OpenShift's clientsets have the core group too, for options and statuses; its own part is first.
		if p.groups.Has(group) {
			return p
		}
	}
	return nil
}

func (s *Store) add(object runtime.Object) error {
	p, gvk := s.recognize(object)
	if p == nil {
		other, is := object.(*unstructured.Unstructured)
		if !is {
			return fmt.Errorf("store %T: its kind is unknown", object)
		}
		for _, o := range s.others {
			if o.GroupVersionKind() == other.GroupVersionKind() && o.GetNamespace() == other.GetNamespace() && o.GetName() == other.GetName() {
				return fmt.Errorf("store %s %s: %w", gvk.Kind, Object{other.GetNamespace(), other.GetName()}, ErrDuplicate)
			}
		}
		s.others = append(s.others, other)
		return nil
	}
	if other, is := object.(*unstructured.Unstructured); is {
		typed, err := p.scheme.New(gvk)
		if err != nil {
			return fmt.Errorf("store %s %s: %w", gvk.Kind, Object{other.GetNamespace(), other.GetName()}, err)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(other.Object, typed, true); err != nil {
			return fmt.Errorf("store %s %s: %w", gvk.Kind, Object{other.GetNamespace(), other.GetName()}, err)
		}
		object = typed
	} else {
		sent, err := p.roundTrip(object)
		if err != nil {
			return fmt.Errorf("store %T: %w", object, err)
		}
		object = sent
	}
	mapping, err := p.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return fmt.Errorf("store %s: %w", gvk, err)
	}
	m := metadata(object)
	k := key{mapping.Resource.GroupResource(), Object{m.GetNamespace(), m.GetName()}}
	if _, exists := s.writes[k]; exists {
		return fmt.Errorf("store %s: %w", k, ErrDuplicate)
	}
	object.GetObjectKind().SetGroupVersionKind(gvk)
	s.setServerFields(k, mapping.Resource, object)
	if err := p.tracker.Create(mapping.Resource, object, m.GetNamespace()); err != nil {
		return fmt.Errorf("store %s: %w", k, err)
	}
	s.writes[k] = write{resource: mapping.Resource}
	return nil
}

func (s *Store) recognize(object runtime.Object) (*part, schema.GroupVersionKind) {
	gvk := object.GetObjectKind().GroupVersionKind()
	for _, p := range s.parts {
		if _, is := object.(*unstructured.Unstructured); is {
			if p.scheme.Recognizes(gvk) {
				return p, gvk
			}
			continue
		}
		if gvks, _, err := p.scheme.ObjectKinds(object); err == nil {
			return p, gvks[0]
		}
	}
	return nil, gvk
}

// Version returns the resourceVersion of the last write.
func (s *Store) Version() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Objects returns copies of all objects, ordered by group, kind, namespace and name, with apiVersion and kind.
func (s *Store) Objects() ([]runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var objects []runtime.Object
	for k := range s.writes {
		object, err := s.get(k)
		if err != nil {
			return nil, err
		}
		if object != nil {
			objects = append(objects, object)
		}
	}
	for _, other := range s.others {
		objects = append(objects, other.DeepCopy())
	}
	slices.SortFunc(objects, func(a, b runtime.Object) int {
		x, y := a.GetObjectKind().GroupVersionKind(), b.GetObjectKind().GroupVersionKind()
		m, n := metadata(a), metadata(b)
		return cmp.Or(cmp.Compare(x.Group, y.Group), cmp.Compare(x.Kind, y.Kind), cmp.Compare(m.GetNamespace(), n.GetNamespace()),
			cmp.Compare(m.GetName(), n.GetName()))
	})
	return objects, nil
}

// get returns a copy of the object, or nil if it does not exist. The caller holds the lock.
func (s *Store) get(k key) (runtime.Object, error) {
	last, known := s.writes[k]
	if !known || last.deleted {
		return nil, nil
	}
	p := s.part(k.Group)
	object, err := p.tracker.Get(last.resource, k.Namespace, k.Name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", k, err)
	}
	gvks, _, err := p.scheme.ObjectKinds(object)
	if err != nil {
		return nil, fmt.Errorf("find the kind of %s: %w", k, err)
	}
	object.GetObjectKind().SetGroupVersionKind(gvks[0])
	return object, nil
}

func metadata(object runtime.Object) metav1.Object {
	m, err := meta.Accessor(object)
	if err != nil {
		panic(fmt.Sprintf("%T has no metadata: %v", object, err))
	}
	return m
}

// setServerFields sets the fields that an API server sets in a new object.
func (s *Store) setServerFields(k key, resource schema.GroupVersionResource, object runtime.Object) {
	m := metadata(object)
	s.version++
	m.SetResourceVersion(strconv.FormatInt(s.version, 10))
	// A uid that is the same for the same writes.
	m.SetUID(types.UID(uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "%s %d", k, s.version)).String()))
	m.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	m.SetGeneration(0)
	if hasGeneration(s.part(k.Group), resource) {
		m.SetGeneration(1)
	}
	setDefaults(object)
}
