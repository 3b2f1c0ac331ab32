package installing

import (
	"context"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/solonode/sno/e2e/controlplane"
)

// Kubeadm is a machine of the same image that `kubeadm init` brings up, which the others are compared with.
var Kubeadm = Method{Name: "kubeadm", Title: "kubeadm init, for comparison", steps: []step{{"node", initialize}}}

// initialize times kubeadm as the all-in-one node is timed: from the start of the machine, and with a pod that is made as soon as anybody can make one.
func initialize(ctx context.Context, m *Machine) error {
	way := controlplane.Kubeadm(m.Version)
	begin := way.Begin
	way.Begin = func(ctx context.Context, n *controlplane.Node) error {
		group, all := errgroup.WithContext(ctx)
		group.Go(func() error { return begin(all, n) })
		group.Go(func() error {
			// There is no kubeconfig at first.
			if err := wait.PollUntilContextTimeout(all, often, patience, true, func(ctx context.Context) (bool, error) {
				return way.Connect(ctx, n) == nil, nil
			}); err != nil {
				return err //nolint:wrapcheck // the caller says of what
			}
			var err error
			m.report.BootTimes, err = arrive(all, n.Started, n.Admin)
			return err
		})
		return group.Wait() //nolint:wrapcheck // its functions have
	}
	n, _, err := way.BringUp(ctx, m.Config)
	if n != nil {
		m.node = n.Machine
	}
	if err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	m.report.Memory, err = m.number(ctx, memoryInUse)
	return err
}
