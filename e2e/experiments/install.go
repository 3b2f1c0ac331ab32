// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"errors"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/bench"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/kindtarget"
)

// Install installs all controllers in one process, as a person does, in place of the six.
var Install = kindtarget.Experiment{
	Name: "install", SecondCluster: true, Run: install,
	Description: "`kubectl apply -k config/all` installs all controllers in one process, which follows the topology with its generated rights, without a forbidden request",
}

var errInstalled = errors.New("the installed controllers do not work")

// installBound is for a pod to start, to lead and to settle, on a busy machine. Released Leases are available at once.
const installBound = 2 * time.Minute

func install(ctx context.Context, e *kindtarget.Env) (err error) {
	var six []string
	for _, module := range framework.AllModules() {
		six = append(six, module.Account())
	}
	if err := e.RemoveDeployments(ctx, six...); err != nil {
		return err
	}
	defer func() {
		// Restore the cluster for the other experiments.
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), waitTimeout)
		defer cancel()
		if err = errors.Join(err, e.RemoveDeployments(back, kindtarget.CombinedDeployment), e.DeployAll(back)); err == nil {
			err = e.WaitForLeases(ctx)
		}
	}()
	begun := time.Now()
	if err := e.DeployCombined(ctx); err != nil {
		return err
	}
	if err := leadsAlone(ctx, e); err != nil {
		return errors.Join(err, onePod(ctx, e))
	}
	took := time.Since(begun)
	// A missing right may be why a process does not follow.
	if err := errors.Join(followsTopology(ctx, e), onePod(ctx, e)); err != nil {
		return err
	}
	row := within("kubectl apply -k config/all, until the process leads", took, installBound)
	if !row.Held {
		return fmt.Errorf("%w: it took %s to lead", errInstalled, took)
	}
	return record(e, "install", []bench.Row{row})
}

// onePod checks that there is one process, that it never restarted, and that no request was forbidden.
func onePod(ctx context.Context, e *kindtarget.Env) error {
	pods, err := e.Controllers(ctx)
	if err != nil {
		return err
	}
	if len(pods) != 1 || len(pods[0].Status.ContainerStatuses) != 1 || pods[0].Status.ContainerStatuses[0].RestartCount > 0 {
		return fmt.Errorf("%w: want one pod that was never restarted, there are %d: %+v", errInstalled, len(pods), pods)
	}
	return e.CheckNothingForbidden(ctx, pods[0].Name)
}

// leadsAlone waits until the process holds its Lease, with the durations of a single node.
func leadsAlone(ctx context.Context, e *kindtarget.Env) error {
	lease := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: framework.SystemNamespace, Name: framework.AllLease}
	return until(ctx, "the process with all controllers leads", installBound, func(ctx context.Context) error {
		err := e.Cluster.Client().Get(ctx, key, lease)
		if err == nil && ptr.Deref(lease.Spec.HolderIdentity, "") == "" {
			err = fmt.Errorf("%w: nobody holds the Lease %s", errInstalled, key)
		}
		return err
	})
}

// followsTopology changes the infrastructure's topology and back. The existing conditions are still those of the six.
func followsTopology(ctx context.Context, e *kindtarget.Env) error {
	control, infrastructure := e.Scenario.ControlPlaneTopology, e.Scenario.InfrastructureTopology
	if err := e.SetTopology(ctx, control, configv1.HighlyAvailableTopologyMode); err != nil {
		return err
	}
	if _, err := e.WaitReason(ctx, framework.Ingress, waitTimeout, "NotNeeded"); err != nil {
		return errors.Join(err, e.SetTopology(ctx, control, infrastructure))
	}
	if err := e.SetTopology(ctx, control, infrastructure); err != nil {
		return err
	}
	return e.WaitSettled(ctx)
}
