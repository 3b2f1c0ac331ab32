// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/conformance/traffic"
	"github.com/solonode/sno/e2e/bench"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/kindtarget"
)

// NewImages rolls out a controller and then a router with another image of the same programs (R-OPS-1).
var NewImages = kindtarget.Experiment{
	Name: "new-images", Description: "the router stays where it is and traffic returns after the controller and the router roll out with another image", Run: newImages,
}

// NodeRestart restarts the control-plane node, and with it everything.
var NodeRestart = kindtarget.Experiment{
	Name: "node-restart", Description: "traffic returns by itself after the control-plane node restarts", Run: nodeRestart,
}

// returnBound is for a node with its API server and everything that starts in sequence, on a busy machine.
const returnBound = 5 * time.Minute

func newImages(ctx context.Context, e *kindtarget.Env) error {
	return visited(ctx, e, "new-images", "New controller image, then new router image", comeback, func(s *site, users *traffic.Generator) error {
		begun := time.Now()
		newer := e.Image(framework.Ingress) + "-next"
		if err := e.Kind.Tag(ctx, e.Image(framework.Ingress), newer); err != nil {
			return err
		}
		if err := e.Deploy(ctx, framework.Ingress, newer); err != nil {
			return err
		}
		if outages := traffic.Outages(users.Since(begun)); len(outages) > 0 {
			return fmt.Errorf("%w: an outage by a new controller: %+v", errOutage, outages)
		}
		if err := s.run(ctx, secondRouter); err != nil {
			return err
		}
		_, err := s.router(ctx, "of the new image on the control plane", func(p *corev1.Pod) bool {
			return s.onControlPlane(p) && p.Spec.Containers[0].Image == secondRouter
		})
		return err
	})
}

func nodeRestart(ctx context.Context, e *kindtarget.Env) error {
	return visited(ctx, e, "node-restart", "Restart of the control-plane node", returnBound, func(s *site, _ *traffic.Generator) error {
		if err := e.Kind.Restart(ctx, s.node); err != nil {
			return err
		}
		_, err := s.router(ctx, "after the restart", s.onControlPlane)
		return err
	})
}

func visited(ctx context.Context, e *kindtarget.Env, name, what string, bound time.Duration, do func(*site, *traffic.Generator) error) (err error) {
	s, err := openSite(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	entrances := []struct {
		scheme string
		users  *traffic.Generator
	}{{"http", s.visit(ctx, "http", 80)}, {"https", s.visit(ctx, "https", 443)}}
	for _, at := range entrances {
		defer at.users.Stop()
		if err := at.users.WaitAnswered(ctx, answeredFor, waitTimeout); err != nil {
			return err
		}
	}
	begun := time.Now()
	if err := do(s, entrances[0].users); err != nil {
		return err
	}
	var rows []bench.Row
	for _, at := range entrances {
		if err := at.users.WaitAnswered(ctx, answeredFor, waitTimeout); err != nil {
			return err
		}
		row := outageRow(what+", "+at.scheme, []time.Duration{traffic.Longest(traffic.Outages(at.users.Since(begun)), time.Now())}, bound)
		if rows = append(rows, row); !row.Held {
			err = errors.Join(err, fmt.Errorf("%w: %s: %s, bound %s", errOutage, row.What, row.Measured, row.Bound))
		}
	}
	return errors.Join(err, record(e, name, rows))
}
