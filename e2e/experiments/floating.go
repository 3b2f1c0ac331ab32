// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"errors"
	"fmt"
	"time"

	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/traffic"
	"github.com/solonode/sno/e2e/bench"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/kindtarget"
	"github.com/solonode/sno/testcluster/scenario"
)

// FloatingRouter deletes the router repeatedly after workers were added. It must return to the control plane (R-ING-3,
// R-SUITE-6).
var FloatingRouter = kindtarget.Experiment{
	Name: "floating-router", Scenario: "none-sno-day2-workers",
	Description: "after workers are added and the router is deleted, without the module traffic stays lost, with it traffic returns every time",
	Run:         floating,
}

const (
	deletions = 10
	// lost is how long a Ready router may take to answer at the control plane's address. Its rules and routes exist before
	// it is Ready.
	lost     = 3 * time.Second
	comeback = 30 * time.Second
)

var (
	// errStays means that the fault does not occur without the module, so the test proves nothing.
	errStays = errors.New("the router never left the control plane without the module")
	errLeft  = errors.New("the router left the control plane")
)

func floating(ctx context.Context, e *kindtarget.Env) (err error) {
	s, err := openSite(ctx, e, "--stock")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.optOut(ctx, false), s.close(ctx)) }()
	users := s.visit(ctx, "http", 80)
	defer users.Stop()
	if err := users.WaitAnswered(ctx, answeredFor, waitTimeout); err != nil {
		return err
	}
	if err := e.AddDay2Workers(ctx); err != nil {
		return err
	}
	if err := s.optOut(ctx, true); err != nil {
		return err
	}
	gone, err := s.floats(ctx, users)
	if err != nil {
		return err
	}
	if err := s.optOut(ctx, false); err != nil {
		return err
	}
	if _, err := s.router(ctx, "on the control plane", s.onControlPlane); err != nil {
		return err
	}
	outages, err := s.stays(ctx, users)
	if err != nil {
		return err
	}
	pinned := outageRow("Router deleted with workers there, with the module", outages, comeback)
	pinned.Compared = fmt.Sprintf("without it: after %d of %d deletions traffic stays lost until the router is moved", gone, deletions)
	if !pinned.Held {
		err = fmt.Errorf("%w: %s, bound %s", errOutage, pinned.Measured, pinned.Bound)
	}
	return errors.Join(err, record(e, "floating-router", []bench.Row{pinned}))
}

func (s *site) onControlPlane(pod *corev1.Pod) bool { return pod.Spec.NodeName == s.node }

// floats deletes the router without the module, and counts how often a Ready router gets no traffic.
func (s *site) floats(ctx context.Context, users *traffic.Generator) (gone int, err error) {
	for range deletions {
		at, err := s.deleteRouter(ctx)
		if err != nil {
			return gone, err
		}
		err = users.WaitAnswered(ctx, answeredFor, answeredFor+lost)
		switch {
		case errors.Is(err, traffic.ErrLost) && !s.onControlPlane(at):
			gone++
		case err != nil:
			return gone, fmt.Errorf("the router is on %s: %w", at.Spec.NodeName, err)
		}
	}
	if gone == 0 {
		return 0, errStays
	}
	return gone, nil
}

// stays deletes the router with the module, and returns the outages.
func (s *site) stays(ctx context.Context, users *traffic.Generator) ([]time.Duration, error) {
	if err := users.WaitAnswered(ctx, answeredFor, waitTimeout); err != nil {
		return nil, err
	}
	var outages []time.Duration
	for range deletions {
		begun := time.Now()
		at, err := s.deleteRouter(ctx)
		if err != nil {
			return nil, err
		}
		if !s.onControlPlane(at) {
			return nil, fmt.Errorf("%w: it is on %s", errLeft, at.Spec.NodeName)
		}
		if err := users.WaitAnswered(ctx, answeredFor, waitTimeout); err != nil {
			return nil, err
		}
		outages = append(outages, traffic.Longest(traffic.Outages(users.Since(begun)), time.Now()))
	}
	return outages, nil
}

func (s *site) deleteRouter(ctx context.Context) (*corev1.Pod, error) {
	old, err := s.router(ctx, "to delete", func(*corev1.Pod) bool { return true })
	if err != nil {
		return nil, err
	}
	if err := s.Cluster.Client().Delete(ctx, old); err != nil {
		return nil, fmt.Errorf("delete the router: %w", err)
	}
	return s.router(ctx, "that replaces the deleted one", func(p *corev1.Pod) bool { return p.UID != old.UID })
}

// optOut sets or removes the opt-out of the default IngressController, and waits until the module has reacted.
func (s *site) optOut(ctx context.Context, out bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), waitTimeout)
	defer cancel()
	value, reasons := "null", []string{"AsExpected", "RouterRollingOut"}
	if out {
		value, reasons = `"ingress"`, []string{"OptedOut"}
	}
	ic := &operatorv1.IngressController{}
	ic.Namespace, ic.Name = scenario.OperatorNamespace, scenario.DefaultIngressController
	body := fmt.Sprintf(`{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":%s}}}`, value)
	if err := s.Cluster.Client().Patch(ctx, ic, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		return fmt.Errorf("opt the default IngressController out or in: %w", err)
	}
	_, err := s.WaitReason(ctx, framework.Ingress, waitTimeout, reasons...)
	return err
}
