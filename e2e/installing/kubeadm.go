// SPDX-License-Identifier: Apache-2.0

package installing

import (
	"context"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/solonode/sno/e2e/controlplane"
)

// Kubeadm is a machine of the same image that `kubeadm init` sets up, for comparison.
var Kubeadm = Method{Name: "kubeadm", Title: "kubeadm init, for comparison", steps: []step{{"node", initialize}}}

// initialize measures kubeadm like the all-in-one node: from the start of the machine until a pod runs that is created
// as early as possible.
func initialize(ctx context.Context, m *Machine) error {
	way := controlplane.Kubeadm(m.Version)
	begin := way.Begin
	way.Begin = func(ctx context.Context, n *controlplane.Node) error {
		group, all := errgroup.WithContext(ctx)
		group.Go(func() error { return begin(all, n) })
		group.Go(func() error {
			if err := wait.PollUntilContextTimeout(all, measureInterval, stepTimeout, true, func(ctx context.Context) (bool, error) {
				return way.Connect(ctx, n) == nil, nil
			}); err != nil {
				return err //nolint:wrapcheck // the caller wraps it
			}
			var err error
			m.report.BootTimes, err = waitForBoot(all, n.Started, n.Admin)
			return err
		})
		return group.Wait() //nolint:wrapcheck // its functions wrap theirs
	}
	n, _, err := way.BringUp(ctx, m.Config)
	if n != nil {
		m.node = n.Machine
	}
	if err != nil {
		return err //nolint:wrapcheck // names the object
	}
	m.report.Memory, err = m.number(ctx, memoryInUse)
	return err
}
