// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/solonode/sno/e2e/joining"
	"github.com/solonode/sno/testcluster/embedded"
)

const (
	floodRequests = 10_000
	floodDelay    = 10 * time.Second
	floodMemory   = 64 * mebi
)

// requestFlood measures the time until a legitimate request is approved during a flood of requests that must stay
// pending, and the memory of the outside tool. The kubelets that it calls hang.
func requestFlood(ctx context.Context, o Options) ([]Row, error) {
	c, err := embedded.Start(ctx, embedded.Config{Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Stop() }()
	if err := joining.Prepare(ctx, c); err != nil {
		return nil, err
	}
	tool, err := joining.NewTool(ctx, c, o.Progress)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{embedded.Kubelets, embedded.Scheduler, embedded.ControllerManager} {
		if err := c.Component(name).Kill(); err != nil {
			return nil, err
		}
	}
	at, err := joining.Address()
	if err != nil {
		return nil, err
	}
	kubelet, err := joining.StartKubelet(at)
	if err != nil {
		return nil, err
	}
	defer kubelet.Stop()
	kubelet.Hang()
	logf(o.Progress, "Making %d nodes and %d requests", o.Nodes, floodRequests)
	if err := joining.CreateNodes(ctx, c, o.Nodes, kubelet); err != nil {
		return nil, err
	}
	if err := joining.CreateRequests(ctx, c, floodRequests, o.Nodes); err != nil {
		return nil, err
	}
	if err := tool.WriteInventory(joining.Entry{Name: "first", Window: joining.OpenWindow()}, joining.Entry{Name: "second", Window: joining.OpenWindow()}); err != nil {
		return nil, err
	}
	running, err := tool.Start(ctx)
	if err != nil {
		return nil, err
	}
	var slowest time.Duration
	for _, name := range []string{"first", "second"} { // at the start, and later
		took, err := joining.TimeToApproval(ctx, c, name)
		if err != nil {
			return nil, err
		}
		slowest = max(slowest, took)
	}
	used, err := readMemory(running.PID())
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("approve --watch, %d pending requests and %d nodes whose kubelets hang: ", floodRequests, o.Nodes)
	return []Row{
		{What: what + "a legitimate request approved after", Measured: seconds(slowest), Bound: "< 10 s", Compared: "-", Held: slowest < floodDelay},
		{
			What: what + "its memory", Measured: used.String(), Bound: "peak < 64 MiB", Compared: "stock machine-approver, 20 requests on 2,000 nodes: peak 484 MiB",
			Held: used.peak < floodMemory,
		},
	}, nil
}
