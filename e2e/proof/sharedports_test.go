// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/testcluster/operand"
	"github.com/solonode/sno/testcluster/scenario"
	patchworkload "github.com/solonode/sno/topology/workload"
)

// TestSharedHostPorts rolls out a router with host ports on one node (R-SNO-2). If the pods share their ports, the
// scheduler places the new one next to the old one, otherwise when the old one has ended.
func TestSharedHostPorts(t *testing.T) {
	t.Parallel()
	p := start(t, framework.Config{Scenario: "none-sno", Hosts: map[framework.Module][]string{framework.Ingress: nil}})
	p.routerRolledOut()
	for _, test := range []struct {
		args []string
		want int
	}{{nil, 1}, {[]string{"--shared-host-ports"}, 2}} {
		p.must(p.RunHost(p.ctx, framework.Ingress, test.args...))
		p.must(wait.PollUntilContextTimeout(p.ctx, poll, operand.WaitTimeout, true, func(ctx context.Context) (bool, error) {
			live, err := p.liveRouter(ctx)
			if err != nil {
				return false, err
			}
			_, surge, ok := patchworkload.Steps(live.Spec.Strategy, 1)
			return ok && surge == test.want-1, nil
		}))
		p.routerRolledOut()
		p.rollRouter(fmt.Sprint(test.args))
		if most := p.routerRolledOut(); most != test.want {
			t.Errorf("%v: at most %d routers on the node, want %d", test.args, most, test.want)
		}
	}
}

func (p *proof) liveRouter(ctx context.Context) (*appsv1.Deployment, error) {
	live := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: scenario.RouterNamespace, Name: "router-" + scenario.DefaultIngressController}
	return live, p.Cluster.Client().Get(ctx, key, live) //nolint:wrapcheck // of a test
}

func (p *proof) rollRouter(why string) {
	p.t.Helper()
	live, err := p.liveRouter(p.ctx)
	p.must(err)
	body := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"rolled":%q}}}}}`, why)
	p.must(p.Cluster.Client().Patch(p.ctx, live, client.RawPatch(types.MergePatchType, []byte(body))))
}

// routerRolledOut waits until there is one router, of the newest revision and available, and returns the largest number
// that was on the node until then.
func (p *proof) routerRolledOut() int {
	p.t.Helper()
	most := 0
	p.must(wait.PollUntilContextTimeout(p.ctx, poll, operand.WaitTimeout, true, func(ctx context.Context) (bool, error) {
		live, err := p.liveRouter(ctx)
		if client.IgnoreNotFound(err) != nil {
			return false, err
		}
		var pods corev1.PodList
		if err := p.Cluster.Client().List(ctx, &pods, client.InNamespace(scenario.RouterNamespace)); err != nil {
			return false, err //nolint:wrapcheck // of a test
		}
		placed := 0
		for i := range pods.Items {
			if pods.Items[i].Spec.NodeName != "" {
				placed++
			}
		}
		most = max(most, placed)
		status := live.Status
		return live.UID != "" && status.ObservedGeneration >= live.Generation && status.UpdatedReplicas == 1 && status.AvailableReplicas == 1 &&
			len(pods.Items) == 1, nil
	}))
	return most
}
