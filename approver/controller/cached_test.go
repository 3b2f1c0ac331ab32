package controller

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/manager"
)

// behind is a cache that goes on having one Infrastructure.
type behind struct {
	client.Reader
	infrastructure *unstructured.Unstructured
}

func (b behind) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if u, ok := o.(*unstructured.Unstructured); ok && u.GetKind() == "Infrastructure" {
		b.infrastructure.DeepCopyInto(u)
		return nil
	}
	return b.Reader.Get(ctx, key, o, opts...)
}

// behind is a cache that has the topology of this moment for ever.
func (c *cluster) behind() behind {
	c.Helper()
	now := manager.Infrastructure.Unstructured()
	c.must(c.admin.Get(c.Context(), manager.Infrastructure.Key(), now))
	return behind{c.admin, now}
}

// At rest the API server is asked for nothing.
func TestRestReadsTheCache(t *testing.T) {
	c := install(t)
	l := c.looker(approver.NodeClientOff, func(p *patcher) { p.cache = c.admin })
	l.want(l.settle(), patch.InForce, "AsExpected")
	asked := atomic.Int32{}
	l.fuse.Before(func(r *http.Request) {
		if !strings.Contains(r.URL.Path, "/machines") {
			asked.Add(1)
		}
	})
	l.want(l.look(), patch.InForce, "AsExpected")
	if n := asked.Load(); n > 0 {
		t.Errorf("a look at rest takes %d requests", n)
	}
	c.flip(ha)
	l.want(l.settle(), patch.NotNeeded, "NotNeeded")
	if asked.Load() == 0 {
		t.Error("it wrote by what the cache has")
	}
}

// A cache that is behind writes nothing, neither what it would have written nor anything else.
func TestCacheThatIsBehind(t *testing.T) {
	c := install(t)
	l := c.looker(approver.NodeClientOff, func(p *patcher) { p.cache = c.behind() })
	c.flip(ha)
	l.want(l.look(), patch.NotNeeded, "NotNeeded")
	l.atRest()
	if c.config() != nil {
		t.Error("it wrote what is wanted on one node only")
	}
	l.patcher.cache = c.behind()
	c.flip(sr)
	l.want(l.look(), patch.NotNeeded, "NotNeeded") // by the cache, whose next event brings the next look
	l.atRest()
	l.patcher.cache = c.admin
	l.want(l.settle(), patch.InForce, "AsExpected")
}

// While the patch is on its way nothing is listed; once it stands, at once.
func TestAgingBeginsAtRest(t *testing.T) {
	c := install(t)
	l := c.looker(approver.NodeClientOff)
	a := l.patcher.aging
	l.want(l.look(), patch.Progressing, "Restarting")
	if len(a.beginRequests)+len(a.beginKubelets) > 0 || !a.concerned.Load() {
		t.Errorf("it looks at requests while everything on the node reacts to the same change; concerned: %t", a.concerned.Load())
	}
	l.settle()
	if len(a.beginRequests) != 1 || len(a.beginKubelets) != 1 {
		t.Error("it does not look at once")
	}
	<-a.beginRequests
	l.look()
	if len(a.beginRequests) > 0 {
		t.Error("it looks again at once")
	}
	c.flip(ha)
	l.settle()
	c.flip(sr)
	l.settle()
	if len(a.beginRequests) != 1 {
		t.Error("it does not begin again")
	}
}
