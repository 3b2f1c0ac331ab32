// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"flag"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/topology"
)

func TestOptions(t *testing.T) {
	for _, test := range []struct {
		name      string
		flags     []string
		arguments []string
		valid     bool
	}{
		{"defaults", nil, nil, true},
		{"all", []string{"--stock", "--drain-policy=workers", "--shutdown-bound=0", "--shutdown-settle=0"}, nil, true},
		{"a policy", []string{"--drain-policy=always"}, nil, false},
		{"a bound", []string{"--shutdown-bound=-1s"}, nil, false},
		{"an argument", nil, []string{"x"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := DefaultOptions()
			flags := flag.NewFlagSet(t.Name(), flag.ContinueOnError)
			o.BindFlags(flags)
			if err := flags.Parse(test.flags); err != nil {
				t.Fatal(err)
			}
			if err := o.Validate(test.arguments); errors.Is(err, ErrOptions) == test.valid || (err == nil) != test.valid {
				t.Errorf("got %v, valid: %t", err, test.valid)
			}
		})
	}
}

func clusterOf(mode configv1.TopologyMode) topology.Cluster {
	reading := topology.ReadingOf(mode)
	return topology.Cluster{ControlPlane: reading, Infrastructure: reading}
}

func TestTurns(t *testing.T) {
	n := func(name, current, desired string) corev1.Node {
		n := node(name)
		n.Annotations = map[string]string{machineconfig.CurrentConfigAnnotation: current, machineconfig.DesiredConfigAnnotation: desired}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		return *n
	}
	broken := func(n corev1.Node) corev1.Node {
		n.Status.Conditions[0].Status = corev1.ConditionUnknown
		return n
	}
	pool := func(role string, limit intstr.IntOrString) *mcfgv1.MachineConfigPool {
		p := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: role}}
		p.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/" + role: ""}}
		p.Spec.Configuration.Name, p.Spec.MaxUnavailable = "new", &limit
		return p
	}
	one, many := intstr.FromInt32(1), intstr.FromString("100%")
	for _, test := range []struct {
		name  string
		mode  configv1.TopologyMode
		limit intstr.IntOrString
		nodes []corev1.Node
		want  map[string]string
		err   error
	}{
		{"the only node", sr, one, []corev1.Node{n("m0", "old", "old")}, map[string]string{"m0": "new"}, nil},
		{"a majority stays", ha, many, []corev1.Node{n("m0", "old", "old"), n("m1", "old", "old"), n("m2", "old", "old")}, map[string]string{"m0": "new"}, nil},
		{"one is missing", ha, many, []corev1.Node{n("m0", "old", "old"), n("m1", "old", "old")}, map[string]string{"m0": "new"}, nil},
		{"one is updating", ha, many, []corev1.Node{n("m0", "old", "new"), n("m1", "old", "old"), n("m2", "old", "old")}, map[string]string{}, nil},
		{"one is unavailable and first", ha, many, []corev1.Node{n("m0", "old", "old"), broken(n("m1", "old", "old")), n("m2", "old", "old")}, map[string]string{"m1": "new"}, nil},
		{"workers", ha, many, []corev1.Node{n("w0", "old", "old"), n("w1", "old", "old"), n("w2", "new", "new")}, map[string]string{"w0": "new", "w1": "new"}, nil},
		{"no daemon", ha, one, []corev1.Node{*node("w0")}, map[string]string{}, nil},
		{"an unreadable limit", ha, intstr.FromString("some"), []corev1.Node{n("w0", "old", "old")}, map[string]string{}, machineconfig.ErrMaxUnavailable},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := state{cluster: clusterOf(test.mode), nodes: test.nodes, pools: []*mcfgv1.MachineConfigPool{pool("master", test.limit), pool("worker", test.limit)}}
			got, err := vendoredTurns(s)
			if diff := cmp.Diff(test.want, got); diff != "" || !errors.Is(err, test.err) {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestGracePeriodsByTopology(t *testing.T) {
	pods := []corev1.Pod{
		{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: ptr.To[int64](45)}},
		{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: ptr.To[int64](10), Priority: ptr.To[int32](2_000_000_000)}},
	}
	want := machineconfig.GracePeriods{Total: 90 * time.Second, Critical: 30 * time.Second}
	for _, test := range []struct {
		name  string
		mode  configv1.TopologyMode
		nodes []corev1.Node
		want  machineconfig.GracePeriods
	}{
		{"one node", sr, []corev1.Node{*node("m0")}, want},
		{"a worker", sr, []corev1.Node{*node("m0"), *node("w0")}, machineconfig.GracePeriods{}},
		{"highly available", ha, []corev1.Node{*node("m0")}, machineconfig.GracePeriods{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := gracePeriods(state{cluster: clusterOf(test.mode), nodes: test.nodes}, pods, 3*time.Minute)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if test.want.Total > 0 {
				if diff := cmp.Diff(test.want, periodsOf(configFor(got))); diff != "" {
					t.Errorf("what is read from the MachineConfig (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// Periods that are long enough stay, since each change restarts the node.
func TestNext(t *testing.T) {
	p := func(total, critical time.Duration) machineconfig.GracePeriods {
		return machineconfig.GracePeriods{Total: total * time.Second, Critical: critical * time.Second}
	}
	for _, test := range []struct {
		name             string
		live, want, next machineconfig.GracePeriods
	}{
		{"none yet", p(0, 0), p(60, 30), p(60, 30)},
		{"shorter", p(120, 60), p(60, 30), p(120, 60)},
		{"longer", p(60, 30), p(90, 30), p(90, 30)},
		{"longer in one part", p(90, 60), p(90, 30), p(90, 30)},
		{"not wanted", p(60, 30), p(0, 0), p(0, 0)},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.next, next(test.live, test.want)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
