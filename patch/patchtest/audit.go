package patchtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// auditPolicy records every request that could write, as it comes in. Reviews are questions in the form of a create.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [ResponseStarted, ResponseComplete, Panic]
rules:
- level: None
  resources:
  - group: authorization.k8s.io
  - group: authentication.k8s.io
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`

// Write is one write request, whatever the API server answered.
type Write struct {
	// User is who sent it.
	User string
	// Verb is create, update, patch, delete or deletecollection.
	Verb string
	// URI is the path and the query, for example with dryRun, force and fieldManager.
	URI string
}

func (w Write) String() string { return w.User + ": " + w.Verb + " " + w.URI }

func (s *APIServer) auditLog() string { return filepath.Join(s.folder, "audit.log") }

// audit is what was read of the audit log so far.
type audit struct {
	mu     sync.Mutex
	read   int64
	writes []Write
}

// catchUp reads the whole lines that came since the last call. What follows the last line break is still being written.
func (a *audit) catchUp(path string) ([]Write, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	log, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the audit log: %w", err)
	}
	defer log.Close() //nolint:errcheck // it was only read
	if _, err := log.Seek(a.read, io.SeekStart); err != nil {
		return nil, fmt.Errorf("the audit log: %w", err)
	}
	text, err := io.ReadAll(log)
	if err != nil {
		return nil, fmt.Errorf("the audit log: %w", err)
	}
	for {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			return slices.Clip(a.writes), nil
		}
		var event struct {
			Verb       string `json:"verb"`
			RequestURI string `json:"requestURI"`
			User       struct {
				Username string `json:"username"`
			} `json:"user"`
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("the audit log: %w", err)
		}
		a.writes = append(a.writes, Write{User: event.User.Username, Verb: event.Verb, URI: event.RequestURI})
		a.read += int64(len(line)) + 1
		text = rest
	}
}

// Writes are the write requests of the user so far, in order. An empty user stands for everybody except the API server itself.
// Every request that was answered before the call is counted.
func (s *APIServer) Writes(t testing.TB, user string) []Write {
	t.Helper()
	return by(user, s.allWrites(t))
}

// WritesDuring are the write requests that the user sends while the function runs.
func (s *APIServer) WritesDuring(t testing.TB, user string, during func()) []Write {
	t.Helper()
	before := len(s.allWrites(t))
	during()
	return by(user, s.allWrites(t)[before:])
}

// NoWrites fails the test for every write request that the user sends while the function runs.
func (s *APIServer) NoWrites(t testing.TB, user string, during func()) {
	t.Helper()
	for _, write := range s.WritesDuring(t, user, during) {
		t.Errorf("a write request where there should be none: %s", write)
	}
}

func (s *APIServer) allWrites(t testing.TB) []Write {
	t.Helper()
	writes, err := s.audit.catchUp(s.auditLog())
	if err != nil {
		t.Fatal(err)
	}
	return writes
}

func by(user string, writes []Write) []Write {
	var its []Write
	for _, write := range writes {
		if write.User == user || (user == "" && !strings.HasPrefix(write.User, "system:apiserver")) {
			its = append(its, write)
		}
	}
	return its
}
