// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"
	"strings"
	"sync"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/solonode/sno/testcluster/audit"
)

// Write is a write request, also a rejected one.
type Write struct {
	User string
	Verb string // create, update, patch, delete or deletecollection
	URI  string // path and query, for example with dryRun and fieldManager
}

func (w Write) String() string { return w.User + ": " + w.Verb + " " + w.URI }

// auditLog holds the writes in the part of the audit log that was read.
type auditLog struct {
	path string

	mu     sync.Mutex
	read   int64
	writes []Write
}

// catchUp reads the lines that were added since the last call, and returns all writes.
func (a *auditLog) catchUp() ([]Write, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	events, next, err := audit.Read(a.path, a.read, begins)
	if err != nil {
		return nil, err
	}
	a.read = next
	for _, event := range events {
		a.writes = append(a.writes, Write{User: event.User.Username, Verb: event.Verb, URI: event.RequestURI})
	}
	return slices.Clip(a.writes), nil
}

// begins selects the record of a write request that is made before it is processed. Reviews only query.
func begins(event *auditv1.Event) bool {
	review := event.ObjectRef != nil && slices.Contains([]string{"authorization.k8s.io", "authentication.k8s.io"}, event.ObjectRef.APIGroup)
	return event.Stage == auditv1.StageRequestReceived && audit.WriteVerbs.Has(event.Verb) && !review
}

// Writes returns the write requests of the user, in order. An empty user selects all but the API server itself.
func (s *Server) Writes(t testing.TB, user string) []Write {
	t.Helper()
	return by(user, s.allWrites(t))
}

// WritesDuring returns the write requests of the user while the function runs.
func (s *Server) WritesDuring(t testing.TB, user string, during func()) []Write {
	t.Helper()
	before := len(s.allWrites(t))
	during()
	return by(user, s.allWrites(t)[before:])
}

// NoWrites fails the test for each write request of the user while the function runs.
func (s *Server) NoWrites(t testing.TB, user string, during func()) {
	t.Helper()
	for _, write := range s.WritesDuring(t, user, during) {
		t.Errorf("unexpected write request: %s", write)
	}
}

func (s *Server) allWrites(t testing.TB) []Write {
	t.Helper()
	writes, err := s.audit.catchUp()
	NoError(t, err)
	return writes
}

func by(user string, writes []Write) []Write {
	return slices.DeleteFunc(slices.Clone(writes), func(w Write) bool {
		return w.User != user && (user != "" || strings.HasPrefix(w.User, "system:apiserver"))
	})
}
