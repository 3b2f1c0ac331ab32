package operator

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	operatorv1 "github.com/openshift/api/operator/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/solonode/sno/auth"
)

const (
	// The API servers are the endpoints of this Service.
	apiServerNamespace = metav1.NamespaceDefault
	apiServerService   = "kubernetes"
	apiServerPort      = "https"
)

// wellKnown looks at the well-known endpoint of every API server, again and again, and reports how it stands. It is a
// reconciler of its own, so that an API server that does not answer holds up no Deployment.
type wellKnown struct {
	reader
	rules rules
	probe *prober
	// every is the time between two looks.
	every time.Duration

	// state is what the look before left; nil in a process that has not looked yet.
	state *auth.WellKnownState
	// said is what was logged of it.
	said string
}

// Reconcile implements reconcile.Reconciler. It is never run concurrently.
func (w *wellKnown) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	after, err := w.look(ctx)
	if err != nil {
		// Also where it is the API server that is away: the next look is due when it is due, with no back-off.
		logr.FromContextOrDiscard(ctx).Error(err, "Looking at the API servers failed; trying again")
		if after == 0 {
			after = w.every
		}
	}
	return reconcile.Result{RequeueAfter: after}, nil
}

// look returns when to look again, 0 for at the next event.
func (w *wellKnown) look(ctx context.Context) (time.Duration, error) {
	authentication, err := w.authentication(ctx)
	if err != nil || authentication == nil {
		return 0, err
	}
	cluster, err := w.cluster(ctx)
	if err != nil || cluster == nil {
		return 0, err
	}
	var slices discoveryv1.EndpointSliceList
	err = w.client.List(ctx, &slices, client.InNamespace(apiServerNamespace), client.MatchingLabels{discoveryv1.LabelServiceName: apiServerService})
	if err != nil {
		return 0, err
	}
	mode := cluster.ControlPlane.Mode
	if w.state == nil {
		state := publishedState(authentication.Status.Conditions, mode)
		w.state = &state
	}
	probes := w.probe.all(ctx, endpoints(slices.Items))
	if ctx.Err() != nil {
		return 0, nil // the operator ends, which says nothing about the API servers
	}
	if failed := errors.Join(probes...); failed == nil {
		w.said = ""
	} else if w.said != failed.Error() { // else it stands in the log already
		w.said = failed.Error()
		logr.FromContextOrDiscard(ctx).Info("Not every API server serves the well-known endpoint", "path", w.probe.path, "err", w.said)
	}
	readiness := w.rules.readiness(mode, probes, *w.state, time.Now())
	w.state = &readiness.State
	after := w.every
	if readiness.After > 0 {
		after = min(after, readiness.After)
	}
	// The probes took their time: read again, so that the write is not refused.
	if authentication, err = w.authentication(ctx); err != nil || authentication == nil {
		return after, err
	}
	err = publish(ctx, w.client, authentication, func(status *operatorv1.AuthenticationStatus) {
		status.Conditions = merged(status.Conditions, readiness.Conditions(wellKnownConditions), metav1.Now())
	})
	if onlyStale(err) {
		return staleCache, nil
	}
	return after, err
}

// endpoints are the addresses, as host:port, of the API servers that are ready.
func endpoints(slices []discoveryv1.EndpointSlice) []string {
	var found []string
	for _, slice := range slices {
		for _, port := range slice.Ports {
			if ptr.Deref(port.Name, "") != apiServerPort || port.Port == nil {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				if ptr.Deref(endpoint.Conditions.Ready, true) && len(endpoint.Addresses) > 0 {
					found = append(found, hostPort(endpoint.Addresses[0], *port.Port))
				}
			}
		}
	}
	return found
}
