// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"errors"
	"net"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/testcluster/standin"
)

const (
	// The API servers are the endpoints of this Service.
	apiServerNamespace = metav1.NamespaceDefault
	apiServerService   = "kubernetes"
	apiServerPort      = "https"
)

// wellKnown periodically requests the well-known endpoint of every API server, and reports the result. It is a separate
// reconciler, so that an API server without a response does not delay the Deployments.
type wellKnown struct {
	reconciler
	probe *prober
	every time.Duration

	// state is the state of the last requests; nil in a new process.
	state  *auth.WellKnownState
	logged string
}

func (w *wellKnown) reconcile(ctx context.Context, _ client.ObjectKey) (time.Duration, error) {
	after, err := w.check(ctx)
	if err != nil {
		// Without a back-off, also when the API server is unavailable.
		logr.FromContextOrDiscard(ctx).Error(err, "Requesting the well-known endpoints failed, retrying")
		if after == 0 {
			after = w.every
		}
	}
	return after, nil
}

// check returns the time until the next check, 0 for the next event.
func (w *wellKnown) check(ctx context.Context) (time.Duration, error) {
	authentication, cluster, err := w.read(ctx)
	if err != nil || authentication == nil {
		return 0, err
	}
	var slices discoveryv1.EndpointSliceList
	err = w.client.List(ctx, &slices, client.InNamespace(apiServerNamespace), client.MatchingLabels{discoveryv1.LabelServiceName: apiServerService})
	if err != nil {
		return 0, err
	}
	mode := cluster.ControlPlane.Mode
	if w.state == nil {
		state := publishedState(authentication.Status.Conditions)
		w.state = &state
	}
	probes := w.probe.all(ctx, endpoints(slices.Items))
	if ctx.Err() != nil {
		return 0, nil // the operator ends
	}
	if failed := errors.Join(probes...); failed == nil {
		w.logged = ""
	} else if w.logged != failed.Error() { // not logged yet
		w.logged = failed.Error()
		logr.FromContextOrDiscard(ctx).Info("Not every API server serves the well-known endpoint", "path", w.probe.path, "err", w.logged)
	}
	readiness := w.rules.readiness(mode, probes, *w.state, time.Now())
	w.state = &readiness.State
	after := w.every
	if readiness.After > 0 {
		after = min(after, readiness.After)
	}
	// Read it again after the probes, so that the write does not conflict.
	if authentication, _, err = w.read(ctx); err != nil || authentication == nil {
		return after, err
	}
	changed := authentication.DeepCopy()
	changed.Status.Conditions = standin.Merge(changed.Status.Conditions, readiness.Conditions(wellKnownConditions)...)
	return after, standin.UpdateStatus(ctx, w.client, authentication, changed)
}

// endpoints returns the addresses of ready API servers as host:port.
func endpoints(slices []discoveryv1.EndpointSlice) []string {
	var found []string
	for _, slice := range slices {
		for _, port := range slice.Ports {
			if ptr.Deref(port.Name, "") != apiServerPort || port.Port == nil {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				if ptr.Deref(endpoint.Conditions.Ready, true) && len(endpoint.Addresses) > 0 {
					found = append(found, net.JoinHostPort(endpoint.Addresses[0], strconv.Itoa(int(*port.Port))))
				}
			}
		}
	}
	return found
}
