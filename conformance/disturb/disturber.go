// SPDX-License-Identifier: Apache-2.0

package disturb

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
)

// Disturber performs acts on a cluster. It is not safe for concurrent use: one act must not see another.
type Disturber struct {
	Target cluster.Target
	Client client.Client
	Set    kubernetes.Interface
	// Before is the stable cluster before all acts.
	Before *catalogue.State
	// NewWorkload has the cluster run and remove a new Deployment. It returns what does not follow, or "", and
	// catalogue.ErrInconclusive if the cluster or the account's permissions prevent it.
	NewWorkload func(context.Context) (missing string, err error)

	records catalogue.Records
	// performed are the errors of the acts so far. No act is tried again: a failed one would disturb the cluster twice.
	performed map[catalogue.Act]error
}

// Unsupported returns why the target does not allow an act, or "".
func (d *Disturber) Unsupported(act catalogue.Act) string {
	if act == catalogue.RestartNodes && d.Target.RestartNode == nil || act == catalogue.DrainNodes && !d.Target.MayDrain ||
		act == catalogue.ChangeTopology && d.Target.SetTopology == nil || act == catalogue.StopAPIServer && d.Target.Outage == nil ||
		act == catalogue.UpgradeCluster && d.Target.Upgrade == nil {
		return fmt.Sprintf("the provider does not support %s", act)
	}
	return ""
}

// Perform performs an act, if it has not been performed yet, and returns the records of all acts so far.
func (d *Disturber) Perform(ctx context.Context, act catalogue.Act) (catalogue.Records, error) {
	err, done := d.performed[act]
	if !done {
		err = d.perform(ctx, act)
		if d.performed == nil {
			d.performed = map[catalogue.Act]error{}
		}
		d.performed[act] = err
	}
	return d.records, err
}

var errUnknownAct = errors.New("unknown act")

func (d *Disturber) perform(ctx context.Context, act catalogue.Act) (err error) {
	r := &d.records
	switch act {
	case catalogue.RollOutAll:
		r.Rollout, err = d.rollOut(ctx)
	case catalogue.EvictAll:
		r.Eviction, err = d.evict(ctx)
	case catalogue.RestartNodes:
		r.NodeRestart, err = d.restart(ctx, "Restarting every node", d.Before.Nodes)
	case catalogue.DrainNodes:
		r.Drains, err = d.drainAll(ctx)
	case catalogue.ChangeTopology:
		r.TopologyChanges, err = d.changeAndRevert(ctx)
	case catalogue.StopAPIServer:
		r.Outage, err = d.interruptAPIServer(ctx)
	case catalogue.CompareStates:
		r.Differences, err = d.compare(ctx)
	case catalogue.UpgradeCluster:
		r.Upgrade, err = d.upgrade(ctx)
	case catalogue.RequestCertificate, catalogue.WatchWrites: // no disturbance
		fallthrough
	default:
		err = fmt.Errorf("%w: %s", errUnknownAct, act)
	}
	return err
}

func (d *Disturber) read(ctx context.Context) (*catalogue.State, error) {
	return cluster.Read(ctx, d.Client, d.Target.PayloadNamespaces)
}
