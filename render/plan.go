package render

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/render/etcd"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/kubeapiserver"
	"github.com/solonode/sno/render/kubecontrollermanager"
	"github.com/solonode/sno/render/kubescheduler"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/staticpods"
	"github.com/solonode/sno/render/store"
)

// Plan returns the loops of all components in their order (R-REN-4). kube-controller-manager's certificates come before
// kube-apiserver's loops, which put its signer into the bundle of those whom the API server trusts.
func Plan(s *inputs.Settings) []loop.Step {
	return slices.Concat(
		etcd.Steps(s),
		[]loop.Step{kubecontrollermanager.Certificates(s)},
		kubeapiserver.Steps(s),
		kubecontrollermanager.Steps(s),
		kubescheduler.Steps(s),
	)
}

// component is one static pod.
type component struct {
	operator librarygo.Operator
	pod      func(*inputs.Settings) staticpods.Pod
}

var components = []component{
	{librarygo.Etcd, etcd.StaticPod},
	{librarygo.KubeAPIServer, kubeapiserver.StaticPod},
	{librarygo.KubeControllerManager, kubecontrollermanager.StaticPod},
	{librarygo.KubeScheduler, kubescheduler.StaticPod},
}

// given returns what the input holds: the config resources, and all other objects. Nodes are not among them: a kubelet registers its own.
func given(c *inputs.Cluster) []runtime.Object {
	objects := []runtime.Object{
		c.Infrastructure, c.Network, c.APIServer, c.Authentication, c.OAuth, c.Image, c.Scheduler, c.FeatureGate, c.Proxy, c.Ingress, c.DNS, c.Node,
	}
	for _, other := range c.Others {
		objects = append(objects, other)
	}
	return objects
}

// prepare returns the API in memory as it is before the first loop runs: the input, what an earlier run left of everything else, and the
// operators' resources where neither has them.
func prepare(c *inputs.Cluster, earlier []runtime.Object) (*store.Store, error) {
	api, err := store.New(given(c)...)
	if err != nil {
		return nil, err
	}
	if err := api.AddMissing(earlier...); err != nil {
		return nil, err
	}
	for _, component := range components {
		if err := api.AddMissing(component.operator.Resource()); err != nil {
			return nil, err
		}
	}
	return api, nil
}
