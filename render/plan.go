// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

// Plan returns the loops of all components in order (R-REN-4). kube-apiserver trusts the first kube-controller-manager
// step's CA.
func Plan(s *inputs.Settings) []loop.Step {
	return slices.Concat(
		etcd.Steps(s),
		[]loop.Step{kubecontrollermanager.Certificates(s)},
		kubeapiserver.Steps(s),
		kubecontrollermanager.Steps(s),
		kubescheduler.Steps(s),
	)
}

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

// inputObjects returns the objects of the input without Nodes, which kubelets register.
func inputObjects(c *inputs.Cluster) []runtime.Object {
	objects := []runtime.Object{
		c.Infrastructure, c.Network, c.APIServer, c.Authentication, c.OAuth, c.Image, c.Scheduler, c.FeatureGate, c.Proxy, c.Ingress, c.DNS, c.Node,
	}
	for _, other := range c.Others {
		objects = append(objects, other)
	}
	return objects
}

// withoutRenewed returns the input without managed certificates that the earlier run has, which may be newer.
func withoutRenewed(given, earlier []runtime.Object) []runtime.Object {
	type object struct {
		kind schema.GroupKind
		name store.Object
	}
	identify := func(o runtime.Object) (object, metav1.Object) {
		m, err := meta.Accessor(o)
		if err != nil {
			return object{}, &metav1.ObjectMeta{}
		}
		return object{o.GetObjectKind().GroupVersionKind().GroupKind(), store.Object{Namespace: m.GetNamespace(), Name: m.GetName()}}, m
	}
	renewed := map[object]bool{}
	for _, o := range earlier {
		if name, m := identify(o); m.GetLabels()[inputs.ManagedLabel] != "" {
			renewed[name] = true
		}
	}
	return slices.DeleteFunc(given, func(o runtime.Object) bool {
		name, _ := identify(o)
		return renewed[name]
	})
}

// newStore returns the API before the first loop: the input, objects of an earlier run, and the operators' resources.
func newStore(c *inputs.Cluster, earlier []runtime.Object) (*store.Store, error) {
	api, err := store.New(withoutRenewed(inputObjects(c), earlier)...)
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
