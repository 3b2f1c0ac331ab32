package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch/patchtest"
)

// outage is a controller whose election begins anew while the API server is away: the Lease cannot be given up, and nobody answers for it.
// On one node that is the likely moment, because what changes the topology also rolls out the API server.
type outage struct {
	admin   client.Client
	line    *patchtest.Line
	process *patchtest.Process
	// before holds the Lease.
	before string
}

func startOutage(t *testing.T) *outage {
	t.Helper()
	server := patchtest.StartAPIServer(t, patchtest.Options{CRDs: []string{patchtest.Infrastructures}})
	o := &outage{admin: server.Admin(t), line: server.Line(t)}
	install(t, server)
	infrastructure(t, o.admin)
	setTopology(t, o.admin, "HighlyAvailable")
	p := patchtest.Start(t, "--kubeconfig="+server.AccountKubeconfig(t, watched.Namespace, "controller", o.line.Address()),
		"--leader-elect-resource-namespace="+watched.Namespace)
	o.process = p
	looks := func() int { return strings.Count(p.Said(), "Sample looked") }
	patchtest.Eventually(t, "it leads", leads(t.Context(), o.admin, 137, &o.before))
	p.Says("Sample looked")

	looked := looks()
	setTopology(t, o.admin, "SingleReplica")
	patchtest.Eventually(t, "it hears of it", func() error {
		if looks() == looked {
			return errors.New("it has not looked")
		}
		return nil
	})
	o.line.Cut()
	p.Says("Leader election follows the topology")
	p.Says("API server does not answer for the Lease")
	return o
}

func TestReelectionDuringOutage(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for Leases to run out; make proof runs it")
	}
	o := startOutage(t)
	o.line.Mend(t)
	var after string
	patchtest.Eventually(t, "it leads with the durations of one node", leads(t.Context(), o.admin, 270, &after))
	one := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: watched.Namespace, Name: watched.Name}, Data: map[string]string{"k": "later"},
	}
	if err := o.admin.Create(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	o.process.Says(`data="later"`)
	if o.before == "" || after != o.before {
		t.Errorf("the Lease went from %q to %q", o.before, after)
	}
	if n := strings.Count(o.process.Said(), "API server does not answer for the Lease"); n != 1 {
		t.Errorf("it says %d times that nobody answers", n)
	}
}

// Its successor is not to wait until the Lease expires.
func TestEndBeforeItLeadsAgain(t *testing.T) {
	o := startOutage(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		o.process.Stop()
	}()
	o.process.Says("Stopping and waiting for")
	o.line.Mend(t)
	<-ended
	var after string
	if err := leads(t.Context(), o.admin, 1, &after)(); err != nil || after != "" || o.before == "" {
		t.Errorf("%v; the Lease went from %q to %q, want one that nobody holds", err, o.before, after)
	}
}

// A replica that ends without having led leaves the Lease to whoever holds it.
func TestEndOfAnotherReplica(t *testing.T) {
	server := patchtest.StartAPIServer(t, patchtest.Options{CRDs: []string{patchtest.Infrastructures}})
	admin := server.Admin(t)
	install(t, server)
	infrastructure(t, admin)
	setTopology(t, admin, "SingleReplica")
	flags := []string{
		"--kubeconfig=" + server.AccountKubeconfig(t, watched.Namespace, "controller", ""), "--leader-elect-resource-namespace=" + watched.Namespace,
	}
	var before, after string
	patchtest.Start(t, flags...)
	patchtest.Eventually(t, "one leads", leads(t.Context(), admin, 270, &before))
	other := patchtest.Start(t, flags...)
	other.Says("Attempting to acquire leader lease")
	other.Stop()
	if err := leads(t.Context(), admin, 270, &after)(); err != nil || before == "" || after != before {
		t.Errorf("%v; the Lease went from %q to %q", err, before, after)
	}
}

func TestIsAway(t *testing.T) {
	leases := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"an answer":           {},
		"no connection":       {err: errors.New("connection refused"), want: true},
		"no time left":        {err: context.DeadlineExceeded, want: true},
		"shutting down":       {err: fmt.Errorf("getting: %w", apierrors.NewServiceUnavailable("not yet")), want: true},
		"starting":            {err: apierrors.NewInternalError(errors.New("no etcd")), want: true},
		"too busy":            {err: apierrors.NewTooManyRequests("later", 1), want: true},
		"too slow":            {err: apierrors.NewServerTimeout(leases, "get", 1), want: true},
		"there is none":       {err: apierrors.NewNotFound(leases, "one")},
		"it is not permitted": {err: apierrors.NewForbidden(leases, "one", nil)},
		"a status of its own": {err: &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusConflict}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isAway(test.err); got != test.want {
				t.Errorf("isAway(%v) = %t", test.err, got)
			}
		})
	}
}
