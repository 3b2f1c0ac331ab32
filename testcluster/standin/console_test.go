// SPDX-License-Identifier: Apache-2.0

package standin_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/standin/console"
)

func consoleObject() *operatorv1.Console {
	return &operatorv1.Console{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Spec: operatorv1.ConsoleSpec{
		OperatorSpec: operatorv1.OperatorSpec{ManagementState: operatorv1.Managed},
	}}
}

// downloads waits until the Deployment is "REPLICAS UNAVAILABLE/SURGE SELECTOR apart, budget".
func (s *site) downloads(want string) {
	s.Helper()
	s.eventually("downloads", func() error { return s.isDownloads(want) })
}

func (s *site) isDownloads(want string) error {
	s.Helper()
	meta := metav1.ObjectMeta{Namespace: "openshift-console", Name: "downloads"}
	got, d := "", &appsv1.Deployment{ObjectMeta: meta}
	if s.get(d) {
		rolling := d.Spec.Strategy.RollingUpdate
		got = fmt.Sprintf("%d %s/%s %v", *d.Spec.Replicas, rolling.MaxUnavailable, rolling.MaxSurge, slices.Sorted(maps.Keys(d.Spec.Template.Spec.NodeSelector)))
		if a := d.Spec.Template.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
			got += " apart"
		}
	}
	if s.get(&policyv1.PodDisruptionBudget{ObjectMeta: meta}) {
		got += ", budget"
	}
	if got != want {
		return fmt.Errorf("it is %q, want %q", got, want) //nolint:err113 // a test
	}
	return nil
}

// Today's rules (U-CON-1) and the module's, in both directions; Unmanaged writes nothing.
func TestConsoleFollowsTopology(t *testing.T) {
	const onMaster, anywhere = " [kubernetes.io/os node-role.kubernetes.io/master]", " [kubernetes.io/os]"
	for _, test := range []struct {
		stock                       bool
		one, two, external, perhaps string
	}{
		{true, "1 25%/25%" + onMaster + ", budget", "2 1/3" + onMaster + " apart, budget", "2 1/3" + anywhere + " apart, budget", "1 25%/25%" + anywhere + ", budget"},
		{false, "1 25%/25%" + onMaster, "2 1/3" + onMaster + " apart, budget", "2 1/3" + anywhere + " apart, budget", "1 25%/25%" + anywhere},
	} {
		t.Run(fmt.Sprintf("stock %t", test.stock), func(t *testing.T) {
			s := newSite(t, []string{"openshift-console"}, []client.Object{&operatorv1.Console{}, &appsv1.Deployment{}, &policyv1.PodDisruptionBudget{}}, consoleObject())
			options := console.DefaultOptions()
			options.Stock = test.stock
			s.start(options)
			downloads := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-console", Name: "downloads"}}
			conditions := func() []operatorv1.OperatorCondition {
				live := consoleObject()
				s.get(live)
				return live.Status.Conditions
			}
			for i, each := range []struct {
				controlPlane, infrastructure configv1.TopologyMode
				want                         string
			}{{single, many, test.one}, {many, many, test.two}, {external, many, test.external}, {external, single, test.perhaps}, {single, single, test.one}} {
				s.topology(each.controlPlane, each.infrastructure)
				if i == 0 {
					s.conditions(conditions, map[string]string{"DownloadsDeploymentAvailable": "False NoPods", "ConsoleDeploymentProgressing": "True RollingOut"})
				}
				s.eventually("the rollout", func() error { // until then an old pod may have to give way
					s.rolledOut("openshift-console", "downloads")
					return s.isDownloads(each.want)
				})
				s.silent(consoleObject(), downloads)
			}
			s.rolledOut("openshift-console", "downloads")
			s.conditions(conditions, map[string]string{"DownloadsDeploymentAvailable": "True AsExpected", "DownloadsDeploymentProgressing": "False AsExpected"})
			change(s, downloads, func(d *appsv1.Deployment) { d.Spec.Replicas, d.Spec.Template.Spec.Tolerations = ptr.To[int32](4), nil })
			s.downloads(test.one)
			change(s, downloads, func(d *appsv1.Deployment) {
				d.Spec.Template.Annotations = map[string]string{"example.com/rolled": "yes"}
			})
			s.eventually("the annotations of the pods are the operator's", func() error {
				if s.get(downloads); downloads.Spec.Template.Annotations["example.com/rolled"] != "" {
					return errors.New("they are somebody else's") //nolint:err113 // a test
				}
				return nil
			})
			change(s, consoleObject(), func(c *operatorv1.Console) { c.Spec.ManagementState = operatorv1.Unmanaged })
			s.topology(many, many)
			s.silent(downloads)
			s.downloads(test.one)
		})
	}
}
