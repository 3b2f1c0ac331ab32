// SPDX-License-Identifier: Apache-2.0

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
	// ErrUndeclared is returned for a write that the loop did not declare.
	ErrUndeclared = errors.New("the write is not declared")
	// ErrClosed is returned for a request of a closed session.
	ErrClosed = errors.New("the session has ended")
	// ErrUnsupported is returned for a request that the store does not support, such as a watch.
	ErrUnsupported = errors.New("not supported by the API in memory")
)

// Session is the API for one control loop.
type Session struct {
	name   string
	store  *Store
	writes []Pattern

	mu     sync.Mutex
	closed bool
	faults []error
	reads  map[key]string
	lists  map[list]map[Object]string
	wrote  []string
}

type list struct {
	schema.GroupVersionResource
	namespace, selector string
}

// Session returns the API for the named loop, which may write what the patterns select.
func (s *Store) Session(name string, writes ...Pattern) *Session {
	session := &Session{name: name, store: s, writes: writes}
	session.Reset()
	return session
}

// Name returns the name of the loop.
func (s *Session) Name() string { return s.name }

// Kube returns a client of Kubernetes' API.
func (s *Session) Kube() kubernetes.Interface {
	c := &kubefake.Clientset{}
	c.AddReactor("*", "*", s.react)
	c.AddWatchReactor("*", noWatch)
	return c
}

// Config returns the client of config.openshift.io.
func (s *Session) Config() configclient.Interface {
	c := &configfake.Clientset{}
	c.AddReactor("*", "*", s.react)
	c.AddWatchReactor("*", noWatch)
	return c
}

// Operator returns the client of operator.openshift.io.
func (s *Session) Operator() operatorclient.Interface {
	c := &operatorfake.Clientset{}
	c.AddReactor("*", "*", s.react)
	c.AddWatchReactor("*", noWatch)
	return c
}

// Close makes every later request fail, so that a loop that hangs cannot write.
func (s *Session) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// Err returns errors that the loop may hide, such as undeclared writes.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.faults...)
}

// Reset forgets reads and writes, before the loop runs again.
func (s *Session) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads, s.lists, s.wrote = map[key]string{}, map[list]map[Object]string{}, nil
}

// Idle reports whether the loop has neither read nor written since Reset.
func (s *Session) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.reads) == 0 && len(s.lists) == 0 && len(s.wrote) == 0
}

// Wrote returns the objects that the loop has changed since Reset, in order.
func (s *Session) Wrote() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.wrote)
}

// StaleRead is an object that was changed after the loop had read it.
type StaleRead struct {
	// Object is the changed object, "secrets ns/name".
	Object string
	// Writer is the loop that changed it last. Missing reports whether the reader found nothing.
	Writer  string
	Missing bool
}

func (r StaleRead) String() string {
	if r.Missing {
		return fmt.Sprintf("it did not find %s, which %q has written since", r.Object, r.Writer)
	}
	return fmt.Sprintf("it read %s, which %q has changed since", r.Object, r.Writer)
}

// StaleReads returns what others have changed after the loop had read it, ordered, without what the patterns select.
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

// NotFound returns one pattern for each object that the loop has not found by name since Reset.
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

// Selects reports whether the pattern selects the object of a pattern without asterisks.
func (p Pattern) Selects(object Pattern) bool {
	return p.matches(key{schema.GroupResource{Group: object.Group, Resource: object.Resource}, Object{object.Namespace, object.Name}})
}

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
