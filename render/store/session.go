package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	configclient "github.com/openshift/client-go/config/clientset/versioned"
	configfake "github.com/openshift/client-go/config/clientset/versioned/fake"
	operatorclient "github.com/openshift/client-go/operator/clientset/versioned"
	operatorfake "github.com/openshift/client-go/operator/clientset/versioned/fake"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	kubefake "k8s.io/client-go/kubernetes/fake"
)

var (
	// ErrUndeclared is in the error of a write that the loop did not declare.
	ErrUndeclared = errors.New("the write is not declared")
	// ErrEnded is in the error of a request of a session that has ended.
	ErrClosed = errors.New("the session has ended")
	// ErrUnsupported is in the error of a request that this API does not answer, such as a watch.
	ErrUnsupported = errors.New("the API in memory does not support it")
)

// Session is the API for one control loop.
type Session struct {
	name   string
	store  *Store
	writes []Pattern

	mu     sync.Mutex
	closed  bool
	faults []error
	reads  map[key]string
	lists  map[list]map[Object]string
	wrote  []string
}

// list is what a list asks for.
type list struct {
	schema.GroupVersionResource
	namespace, selector string
}

// Session returns the API for the loop of that name, which may write what the patterns select.
func (s *Store) Session(name string, writes ...Pattern) *Session {
	session := &Session{name: name, store: s, writes: writes}
	session.Reset()
	return session
}

// Name returns the name of the loop.
func (s *Session) Name() string { return s.name }

// Kube returns a client of Kubernetes' own API.
func (s *Session) Kube() kubernetes.Interface {
	c := &kubefake.Clientset{}
	c.AddReactor("*", "*", s.react)
	c.AddWatchReactor("*", noWatch)
	return c
}

// Config returns a client of config.openshift.io.
func (s *Session) Config() configclient.Interface {
	c := &configfake.Clientset{}
	c.AddReactor("*", "*", s.react)
	c.AddWatchReactor("*", noWatch)
	return c
}

// Operator returns a client of operator.openshift.io.
func (s *Session) Operator() operatorclient.Interface {
	c := &operatorfake.Clientset{}
	c.AddReactor("*", "*", s.react)
	c.AddWatchReactor("*", noWatch)
	return c
}

// End makes every later request fail: a loop that hangs cannot write any more.
func (s *Session) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// Err returns the faults of the loop that its own error may hide, such as a write that it did not declare.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.faults...)
}

// Forget forgets what the loop has read and written so far: it runs once more, and reads anew.
func (s *Session) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads, s.lists, s.wrote = map[key]string{}, map[list]map[Object]string{}, nil
}

// Idle reports whether the loop has neither read nor written anything since it began or Forget was called.
func (s *Session) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.reads) == 0 && len(s.lists) == 0 && len(s.wrote) == 0
}

// Wrote returns the objects that the loop has changed since it began or Forget was called, in order.
func (s *Session) Wrote() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.wrote)
}

// Outdated describes something that a loop has read before it was written.
type StaleRead struct {
	// Object is what has changed, "secrets ns/name".
	Object string
	// Writer is the loop that wrote it last. Missing reports whether the reader found nothing.
	Writer  string
	Missing bool
}

// String returns one sentence.
func (o StaleRead) String() string {
	if o.Missing {
		return fmt.Sprintf("it looked for %s, which %q has written since", o.Object, o.Writer)
	}
	return fmt.Sprintf("it read %s, which %q has changed since", o.Object, o.Writer)
}

// Outdated returns what the loop has read and another loop has changed after that, but for objects that the patterns select,
// ordered by object.
func (s *Session) StaleReads(but ...Pattern) []StaleRead {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]StaleRead{}
	check := func(k key, seen string) {
		last := s.store.writes[k]
		if current := s.store.versionOf(k); current != seen && last.writer != s.name && !anyMatches(but, k) {
			found[k.String()] = StaleRead{Object: k.String(), Writer: last.writer, Missing: seen == ""}
		}
	}
	for k, seen := range s.reads {
		check(k, seen)
	}
	for l, seen := range s.lists {
		for object, version := range seen {
			check(key{l.GroupResource(), object}, version)
		}
		for object := range s.store.listed(l) {
			if _, was := seen[object]; !was {
				check(key{l.GroupResource(), object}, "")
			}
		}
	}
	objects := make([]StaleRead, 0, len(found))
	for _, o := range found {
		objects = append(objects, o)
	}
	slices.SortFunc(objects, func(a, b StaleRead) int { return strings.Compare(a.Object, b.Object) })
	return objects
}

// Missed returns what the loop has looked for by name in vain since it began or Forget was called, and has not written itself: one
// pattern for each object.
func (s *Session) NotFound() []Pattern {
	s.mu.Lock()
	defer s.mu.Unlock()
	var missed []Pattern
	for k, seen := range s.reads {
		if seen == "" {
			missed = append(missed, Pattern{Group: k.Group, Resource: k.Resource, Namespace: k.Namespace, Name: k.Name})
		}
	}
	slices.SortFunc(missed, func(a, b Pattern) int { return strings.Compare(a.String(), b.String()) })
	return missed
}

// Selects reports whether the pattern selects an object that the other pattern names in full.
func (p Pattern) Selects(object Pattern) bool {
	return p.matches(key{schema.GroupResource{Group: object.Group, Resource: object.Resource}, Object{object.Namespace, object.Name}})
}

// versionOf returns the resourceVersion of an object, "" if it is not there. The caller holds the lock.
func (s *Store) versionOf(k key) string {
	last, known := s.writes[k]
	if !known || last.deleted {
		return ""
	}
	object, err := s.part(k.Group).tracker.Get(last.resource, k.Namespace, k.Name)
	if err != nil {
		return ""
	}
	return metadata(object).GetResourceVersion()
}

// listed returns the resourceVersions of what a list shows now. The caller holds the lock.
func (s *Store) listed(l list) map[Object]string {
	selector, err := labels.Parse(l.selector)
	if err != nil {
		selector = labels.Everything()
	}
	items := map[Object]string{}
	for k, last := range s.writes {
		if k.GroupResource != l.GroupResource() || last.deleted || (l.namespace != "" && k.Namespace != l.namespace) {
			continue
		}
		object, err := s.part(k.Group).tracker.Get(last.resource, k.Namespace, k.Name)
		if err != nil {
			continue
		}
		if m := metadata(object); selector.Matches(labels.Set(m.GetLabels())) {
			items[k.Object] = m.GetResourceVersion()
		}
	}
	return items
}
