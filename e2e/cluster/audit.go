package cluster

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/util/sets"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// AuditLogPath returns the API server's own record of every request, one audit.k8s.io/v1 Event per line, without bodies.
func (c *Cluster) AuditLogPath() string { return filepath.Join(c.dir, auditLogFile) }

// AuditOffset returns where the audit log ends now, in bytes, as a starting point for AuditEvents.
func (c *Cluster) AuditOffset() (int64, error) {
	info, err := os.Stat(c.AuditLogPath())
	if err != nil {
		return 0, fmt.Errorf("audit log: %w", err)
	}
	return info.Size(), nil
}

// AuditFilter selects audit events. An empty field selects all.
type AuditFilter struct {
	// User is the authenticated user, such as system:serviceaccount:<namespace>:<name>.
	User string
	// UserAgent is what the client calls itself, in full.
	UserAgent string
	// Resource is the plural, such as ingresscontrollers, and Group its API group, such as operator.openshift.io. The core group cannot be selected.
	Resource, Group string
	// Namespace and Name are of the object.
	Namespace, Name string
	// WritesOnly leaves out what cannot change an object: get, list, watch. Dry runs and refused requests count as writes.
	WritesOnly bool
}

// writeVerbs are the verbs that ask for a change.
var writeVerbs = sets.New("create", "update", "patch", "delete", "deletecollection")

func (f AuditFilter) selects(event *auditv1.Event) bool {
	object := event.ObjectRef
	if object == nil {
		object = &auditv1.ObjectReference{}
	}
	for _, pair := range [][2]string{
		{f.User, event.User.Username}, {f.UserAgent, event.UserAgent}, {f.Resource, object.Resource}, {f.Group, object.APIGroup},
		{f.Namespace, object.Namespace}, {f.Name, object.Name},
	} {
		if pair[0] != "" && pair[0] != pair[1] {
			return false
		}
	}
	return !f.WritesOnly || writeVerbs.Has(event.Verb)
}

// AuditEvents returns the events that filter selects and that were logged at or after offset, oldest first, and the offset to go on from. A line that is only
// half written is left for the next call.
func (c *Cluster) AuditEvents(offset int64, filter AuditFilter) ([]auditv1.Event, int64, error) {
	return readAudit(c.AuditLogPath(), offset, filter)
}

func readAudit(path string, offset int64, filter AuditFilter) ([]auditv1.Event, int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, offset, fmt.Errorf("audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return nil, offset, fmt.Errorf("audit log: %w", err)
	}
	var events []auditv1.Event
	for reader := bufio.NewReader(file); ; {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return events, offset, nil
		}
		if err != nil {
			return events, offset, fmt.Errorf("audit log: %w", err)
		}
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return events, offset, fmt.Errorf("audit log at byte %d: %w", offset, err)
		}
		offset += int64(len(line))
		if filter.selects(&event) {
			events = append(events, event)
		}
	}
}
