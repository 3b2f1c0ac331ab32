// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/solonode/sno/testcluster/audit"
)

// AuditLogPath returns the path of the API server's audit log: one audit.k8s.io/v1 Event per line, without bodies.
func (c *Cluster) AuditLogPath() string { return filepath.Join(c.dir, auditLogFile) }

// auditTimeout bounds the wait for requests in progress. The API server ends one after a minute.
const auditTimeout = 90 * time.Second

// ErrAuditIncomplete is returned when the API server neither answered nor aborted a write.
var ErrAuditIncomplete = errors.New("the audit log lacks the end of a write")

type auditTail struct {
	mu   sync.Mutex
	end  int64
	open map[types.UID]time.Time
}

// AuditOffset returns the size of the audit log in bytes, as a starting point for AuditEvents. It waits until all
// writes in progress are recorded, because an event may be written long after a watch has delivered the change. It
// returns ErrAuditIncomplete if one never is.
func (c *Cluster) AuditOffset(ctx context.Context) (int64, error) {
	var begun []types.UID
	err := wait.PollUntilContextTimeout(ctx, pollInterval, auditTimeout, true, func(context.Context) (bool, error) {
		open, err := c.openWrites()
		if err != nil {
			return false, err
		}
		if begun == nil {
			begun = slices.AppendSeq(make([]types.UID, 0, len(open)), maps.Keys(open))
		}
		begun = slices.DeleteFunc(begun, func(id types.UID) bool { _, is := open[id]; return !is })
		return len(begun) == 0, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return 0, fmt.Errorf("%w: %d of them, such as %s in %s", ErrAuditIncomplete, len(begun), begun[0], c.AuditLogPath())
	}
	if err != nil {
		return 0, fmt.Errorf("audit log: %w", err)
	}
	c.audit.mu.Lock()
	defer c.audit.mu.Unlock()
	return c.audit.end, nil
}

// openWrites reads on in the audit log and returns the writes in progress and when they began, without those of an
// API server that was killed.
func (c *Cluster) openWrites() (map[types.UID]time.Time, error) {
	c.audit.mu.Lock()
	defer c.audit.mu.Unlock()
	events, end, err := audit.Read(c.AuditLogPath(), c.audit.end, nil)
	if err != nil {
		return nil, err
	}
	c.audit.end = end
	if c.audit.open == nil {
		c.audit.open = map[types.UID]time.Time{}
	}
	for i := range events {
		if events[i].Stage == auditv1.StageRequestReceived {
			c.audit.open[events[i].AuditID] = events[i].StageTimestamp.Time
		} else {
			delete(c.audit.open, events[i].AuditID)
		}
	}
	since, runs := c.Component(APIServer).runningSince()
	maps.DeleteFunc(c.audit.open, func(_ types.UID, began time.Time) bool { return !runs || began.Before(since) })
	return maps.Clone(c.audit.open), nil
}

// AuditFilter selects audit events. An empty field selects all.
type AuditFilter struct {
	User      string
	UserAgent string
	// Resource is the plural, such as ingresscontrollers, and Group its API group, such as operator.openshift.io. The core
	// group cannot be selected.
	Resource, Group string
	Namespace, Name string
	// WritesOnly leaves out get, list and watch. Dry runs and refused requests count as writes.
	WritesOnly bool
}

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
	return !f.WritesOnly || audit.WriteVerbs.Has(event.Verb)
}

// AuditEvents returns the selected events that were logged at or after offset, oldest first, and the next offset. It
// includes all writes that are visible in the cluster at the call, see AuditOffset.
func (c *Cluster) AuditEvents(ctx context.Context, offset int64, filter AuditFilter) ([]auditv1.Event, int64, error) {
	if _, err := c.AuditOffset(ctx); err != nil {
		return nil, offset, err
	}
	return readAudit(c.AuditLogPath(), offset, filter)
}

func readAudit(path string, offset int64, filter AuditFilter) ([]auditv1.Event, int64, error) {
	return audit.Read(path, offset, func(event *auditv1.Event) bool {
		return event.Stage != auditv1.StageRequestReceived && filter.selects(event)
	})
}
