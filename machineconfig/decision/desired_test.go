// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/decision"
	"github.com/solonode/sno/machineconfig/internal/fixture"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology"
	"github.com/solonode/sno/topology/topologytest"
)

// single returns the inputs of a settled cluster with one node.
func single(change ...func(*decision.Inputs)) decision.Inputs {
	in := decision.Inputs{
		Inputs: machineconfig.Inputs{
			Cluster: fixture.ClusterOf(topologytest.SR), Nodes: []corev1.Node{fixture.Node("m1", "master", "worker")},
			Pods: []corev1.Pod{fixture.Pod("m1", false, 45), fixture.Pod("m1", true, 20), fixture.Pod("elsewhere", false, 170)},
		},
		Pools: []mcfgv1.MachineConfigPool{fixture.Pool("worker"), fixture.Pool("master")},
	}
	for _, f := range change {
		f(&in)
	}
	return in
}

// written adds both objects of this module.
func written(total string, inhibit string, critical string) func(*decision.Inputs) {
	return func(in *decision.Inputs) {
		in.KubeletConfigs = append(in.KubeletConfigs, kubeletConfig("sno-graceful-shutdown", "master", fieldOwner, periods(total, critical)))
		in.MachineConfig = &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{Name: "99-master-sno-graceful-shutdown",
			ManagedFields: []metav1.ManagedFieldsEntry{entry(fieldOwner, `{"f:spec":{"f:config":{}}}`)}}}
		in.MachineConfig.Spec.Config = runtime.RawExtension{Raw: []byte(`{"storage":{"files":[{"contents":{"source":"data:text/plain;charset=utf-8;base64,` +
			base64.StdEncoding.EncodeToString([]byte("[Login]\nInhibitDelayMaxSec="+inhibit+"\n")) +
			`"},"mode":420,"overwrite":true,"path":"/etc/systemd/logind.conf.d/90-sno-graceful-shutdown.conf"}]},"ignition":{"version":"3.2.0"}}`)}
	}
}

func inPool(change func(*mcfgv1.MachineConfigPool)) func(*decision.Inputs) {
	return func(in *decision.Inputs) { change(&in.Pools[1]) }
}

func otherConfig(name, forPool, configuration string) func(*decision.Inputs) {
	return func(in *decision.Inputs) {
		in.KubeletConfigs = append(in.KubeletConfigs, kubeletConfig(name, forPool, person, configuration))
	}
}

func optOut(object metav1.Object) {
	object.SetAnnotations(map[string]string{patch.OptOutAnnotation: "machineconfig"})
}

type gracePeriods struct {
	Total    metav1.Duration `json:"shutdownGracePeriod"`
	Critical metav1.Duration `json:"shutdownGracePeriodCriticalPods"`
}

func applied(t *testing.T, d decision.Decision) (periods gracePeriods) {
	t.Helper()
	if err := json.Unmarshal(kubeletConfigOf(d).Spec.KubeletConfig.Raw, &periods); err != nil {
		t.Fatal(err)
	}
	return periods
}

// TestDecideTable has all combinations of the preconditions.
func TestDecide(t *testing.T) {
	inForce := written("1m30s", "90", "30s")
	secondNode := func(in *decision.Inputs) { in.Nodes = append(in.Nodes, fixture.Node("w1", "worker")) }
	gracePeriod := func(seconds int64, critical bool) func(*decision.Inputs) {
		return func(in *decision.Inputs) { in.Pods = append(in.Pods, fixture.Pod("m1", critical, seconds)) }
	}
	for _, test := range []struct {
		name string
		in   decision.Inputs
		// total and critical are what is applied.
		total, critical string
		deletes         bool
		restarts        bool
		reason          string
	}{
		{name: "one node", in: single(), total: "1m30s", critical: "30s", restarts: true},
		{name: "in force", in: single(inForce), total: "1m30s", critical: "30s"},
		{name: "logind allows less", in: single(written("1m30s", "5", "30s")), total: "1m30s", critical: "30s", restarts: true},
		{name: "a pod with a longer grace period", in: single(inForce, gracePeriod(100, false)), total: "2m30s", critical: "30s", restarts: true},
		{name: "a critical pod with a longer grace period", in: single(inForce, gracePeriod(31, true)), total: "2m0s", critical: "1m0s", restarts: true},
		{name: "a longer grace period within the step", in: single(inForce, gracePeriod(60, false)), total: "1m30s", critical: "30s"},
		{name: "no pod needs as long any more", in: single(written("2m30s", "150", "1m0s")), total: "2m30s", critical: "1m0s"},
		{name: "one kind grows, the other does not shrink", in: single(written("2m30s", "150", "1m30s"), gracePeriod(61, false)), total: "3m0s", critical: "1m30s", restarts: true},
		{name: "a lower bound", in: single(written("3m0s", "180", "1m30s"), func(in *decision.Inputs) { in.ShutdownBound = time.Minute }),
			total: "1m0s", critical: "30s", restarts: true},
		{name: "a higher bound", in: single(gracePeriod(3600, false), func(in *decision.Inputs) { in.ShutdownBound = 10 * time.Minute }), total: "10m0s", critical: "30s", restarts: true},
		{name: "pool is updating, nothing to change", in: single(inForce, inPool(updating)), total: "1m30s", critical: "30s"},
		{name: "pool is updating, a pod with a longer grace period", in: single(inForce, inPool(updating), gracePeriod(100, false)), reason: decision.ReasonSettling},
		{name: "pool has no conditions", in: single(inPool(func(p *mcfgv1.MachineConfigPool) { p.Status.Conditions = nil })), reason: decision.ReasonSettling},

		{name: "only the MachineConfig exists", in: single(inForce, secondNode, func(in *decision.Inputs) { in.KubeletConfigs = nil }), deletes: true, restarts: true, reason: patch.ReasonNotNeeded},
		{name: "the only node has no role", in: single(func(in *decision.Inputs) { in.Nodes[0].Labels = nil }, gracePeriod(100, false)), total: "2m30s", critical: "30s", restarts: true},
		{name: "a worker is the only node", in: single(func(in *decision.Inputs) { in.Nodes[0] = fixture.Node("m1", "worker") }, gracePeriod(100, false)), total: "2m30s", critical: "30s", restarts: true},
		{name: "a second node runs Windows", in: single(func(in *decision.Inputs) { in.Nodes = append(in.Nodes, fixture.Windows(fixture.Node("x1", "worker"))) }), reason: patch.ReasonNotNeeded},

		{name: "a person's KubeletConfig with grace periods", in: single(otherConfig("theirs", "master", periods("5m0s", "1m0s"))), reason: patch.ReasonFieldOwnedByOther},
		{name: "one that selects nothing", in: single(otherConfig("theirs", "worker", ""), func(in *decision.Inputs) { in.KubeletConfigs[0].Spec.MachineConfigPoolSelector = nil }), total: "1m30s", critical: "30s", restarts: true},
		{name: "a person's KubeletConfig with this module's name", in: single(otherConfig("sno-graceful-shutdown", "master", "{}")), reason: patch.ReasonFieldOwnedByOther},

		{name: "opted out on the pool", in: single(inForce, func(in *decision.Inputs) { optOut(&in.Pools[1]) }), deletes: true, restarts: true, reason: patch.ReasonOptedOut},
		{name: "opted out on the KubeletConfig", in: single(inForce, func(in *decision.Inputs) { optOut(&in.KubeletConfigs[0]) }), deletes: true, restarts: true, reason: patch.ReasonOptedOut},
		{name: "opted out on the MachineConfig", in: single(inForce, func(in *decision.Inputs) { optOut(in.MachineConfig) }), deletes: true, restarts: true, reason: patch.ReasonOptedOut},
		{name: "opted out on another pool", in: single(inForce, func(in *decision.Inputs) { optOut(&in.Pools[0]) }), total: "1m30s", critical: "30s"},
		{name: "nothing to release", in: single(func(in *decision.Inputs) { optOut(&in.Pools[1]) }), reason: patch.ReasonOptedOut},

		{name: "invalid KubeletConfig of this module", in: single(inForce, func(in *decision.Inputs) {
			in.KubeletConfigs[0].Spec.KubeletConfig.Raw = []byte(`{"shutdownGracePeriod":"soon"}`)
		}), reason: patch.ReasonInvalid},
		{name: "unreadable managedFields", in: single(inForce, func(in *decision.Inputs) {
			in.MachineConfig.ManagedFields = []metav1.ManagedFieldsEntry{entry(fieldOwner, `garbage`)}
		}), reason: patch.ReasonInvalid},
		{name: "too low a bound", in: single(func(in *decision.Inputs) { in.ShutdownBound = time.Second }), reason: patch.ReasonInvalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := decision.Decide(test.in)
			total, critical := "", ""
			if got.KubeletConfig.Intent != nil {
				periods := applied(t, got)
				total, critical = periods.Total.Duration.String(), periods.Critical.Duration.String()
			}
			if total != test.total || critical != test.critical || deletes(got) != test.deletes || got.Restarts != test.restarts || reasonOf(got.Result) != test.reason {
				t.Errorf("%s and %s, deletes %t, restarts %t, %v; want %s and %s, %t, %t, %s",
					total, critical, deletes(got), got.Restarts, got.Result, test.total, test.critical, test.deletes, test.restarts, test.reason)
			}
			if (got.KubeletConfig.Intent == nil) != (got.MachineConfig.Intent == nil) || deletes(got) && got.KubeletConfig.Intent != nil {
				t.Errorf("only one object: %+v", got)
			}
			if diff := cmp.Diff(got, decision.Decide(test.in)); diff != "" {
				t.Errorf("not deterministic:\n%s", diff)
			}
		})
	}
}

func TestMessages(t *testing.T) {
	one := decision.Decide(single(otherConfig("theirs", "master", `{"maxPods":500}`)))
	other := decision.Decide(single(otherConfig("performance-sno", "master", `{}`)))
	if one.Result.Message != other.Result.Message {
		t.Errorf("%q and %q", one.Result.Message, other.Result.Message)
	}
	none := decision.Decide(single(func(in *decision.Inputs) { in.Nodes = []corev1.Node{} }))
	if want := "There is no node"; none.Result == nil || none.Result.Message != want {
		t.Errorf("%v, want %q", none.Result, want)
	}
}

// TestGracePeriodsSettle checks that grace periods do not become shorter, and change only a few times.
func TestGracePeriodsSettle(t *testing.T) {
	in := single()
	changes := 0
	var last gracePeriods
	for turn := range int64(400) {
		in.Pods = []corev1.Pod{fixture.Pod("m1", false, turn*37%200), fixture.Pod("m1", true, turn*53%90)}
		decided := decision.Decide(in)
		if decided.Restarts {
			changes++
		}
		config := kubeletConfig("sno-graceful-shutdown", "master", fieldOwner, string(kubeletConfigOf(decided).Spec.KubeletConfig.Raw))
		file := &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{Name: "99-master-sno-graceful-shutdown", ManagedFields: config.ManagedFields}}
		file.Spec.Config = *machineConfigOf(decided).Spec.Config
		in.KubeletConfigs, in.MachineConfig = []mcfgv1.KubeletConfig{config}, file
		now := applied(t, decided)
		if now.Total.Duration < last.Total.Duration {
			t.Fatalf("turn %d: shorter", turn)
		}
		last = now
	}
	if changes > 8 {
		t.Errorf("%d restarts", changes)
	}
	if decision.Decide(in).Restarts {
		t.Error("the grace periods do not settle")
	}
}

func TestObserve(t *testing.T) {
	inForce := written("1m30s", "90", "30s")
	condition := func(kind mcfgv1.KubeletConfigStatusConditionType, status corev1.ConditionStatus, second int64) mcfgv1.KubeletConfigCondition {
		return mcfgv1.KubeletConfigCondition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(time.Unix(second, 0))}
	}
	with := func(conditions ...mcfgv1.KubeletConfigCondition) func(*decision.Inputs) {
		return func(in *decision.Inputs) { in.KubeletConfigs[0].Status.Conditions = conditions }
	}
	yes, no := condition(mcfgv1.KubeletConfigSuccess, corev1.ConditionTrue, 1), condition(mcfgv1.KubeletConfigFailure, corev1.ConditionFalse, 2)
	later := condition(mcfgv1.KubeletConfigSuccess, corev1.ConditionTrue, 3)
	for _, test := range []struct {
		name   string
		in     decision.Inputs
		state  patch.State
		reason string
	}{
		{"in force", single(inForce), patch.InForce, patch.ReasonAsExpected},
		{"accepted", single(inForce, with(yes)), patch.InForce, patch.ReasonAsExpected},
		{"refused", single(inForce, with(yes, no)), patch.Failed, patch.ReasonInvalid},
		{"refused, in any order", single(inForce, with(no, yes)), patch.Failed, patch.ReasonInvalid},
		{"refused once", single(inForce, with(no, later)), patch.InForce, patch.ReasonAsExpected},
		{"just written", single(), patch.Progressing, patch.ReasonRollingOut},
		{"being updated", single(inForce, inPool(updating)), patch.Progressing, patch.ReasonRollingOut},
		{"just written, paused", single(inPool(fixture.Paused)), patch.Progressing, machineconfig.ReasonUpdatesPaused},
		{"paused", single(inForce, inPool(fixture.Paused), inPool(updating)), patch.Progressing, machineconfig.ReasonUpdatesPaused},
		{"paused, updated before", single(inForce, inPool(fixture.Paused)), patch.InForce, patch.ReasonAsExpected},
		{"not settled", single(inPool(updating)), patch.Progressing, decision.ReasonSettling},
		{"not needed", single(func(in *decision.Inputs) { in.Graceful = decision.GracefulOff }), patch.NotNeeded, patch.ReasonNotNeeded},
	} {
		got := decision.Observe(test.in, decision.Decide(test.in))
		if got.State != test.state || got.Reason != test.reason || got.Message == "" {
			t.Errorf("%s: %s, want %s (%s)", test.name, got, test.state, test.reason)
		}
	}
}

func TestWaits(t *testing.T) {
	for state, all := range map[patch.State][]machineconfig.Waiting{
		patch.Failed: {machineconfig.PendingNoPool, machineconfig.PendingWindows},
		patch.Progressing: {machineconfig.PendingPoolPaused, machineconfig.PendingMaxUnavailable, machineconfig.PendingMastersFirst,
			machineconfig.PendingInvalidMaxUnavailable},
	} {
		for _, w := range all {
			want := patch.Result{State: state, Reason: w.Reason, Message: w.Message, After: w.After}
			if got := decision.Waits(w); *got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
	}
}

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		name string
		in   decision.Inputs
		ok   bool
	}{
		{"nothing", decision.Inputs{}, true},
		{"known values", decision.Inputs{Inputs: machineconfig.Inputs{Policy: machineconfig.DrainWorkers}, Graceful: decision.GracefulOff, ShutdownBound: machineconfig.MinShutdownBound}, true},
		{"a high bound", decision.Inputs{Graceful: decision.GracefulOn, ShutdownBound: time.Hour}, true},
		{"unknown policy", decision.Inputs{Inputs: machineconfig.Inputs{Policy: "all"}}, false},
		{"unknown graceful shutdown", decision.Inputs{Graceful: "yes"}, false},
		{"negative bound", decision.Inputs{ShutdownBound: -time.Second}, false},
		{"low bound", decision.Inputs{ShutdownBound: machineconfig.MinShutdownBound - 1}, false},
		{"another MachineConfig", decision.Inputs{MachineConfig: &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{Name: "00-master"}}}, false},
		{"another MachineConfiguration", decision.Inputs{MachineConfiguration: &operatorv1.MachineConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "default"}}}, false},
	} {
		if err := test.in.Validate(); (err == nil) != test.ok || (err != nil && !errors.Is(err, machineconfig.ErrInputs)) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// TestUnreadCluster checks that nothing is decided for a Cluster that was not read from an Infrastructure.
func TestUnreadCluster(t *testing.T) {
	for name, cluster := range map[string]*topology.Cluster{
		"nil":                 nil,
		"zero":                {},
		"control plane only":  {ControlPlane: topology.ReadingOf(topologytest.SR)},
		"infrastructure only": {Infrastructure: topology.ReadingOf(topologytest.SR)},
		"an unknown mode":     {ControlPlane: topology.Reading{Mode: topologytest.Unknown}, Infrastructure: topology.ReadingOf(topologytest.SR)},
		"reported value only": {ControlPlane: topology.Reading{Reported: topologytest.SR}, Infrastructure: topology.ReadingOf(topologytest.SR)},
	} {
		t.Run(name, func(t *testing.T) {
			in := single(func(in *decision.Inputs) { in.Cluster, in.Node = cluster, "m1" })
			state, reason := patch.Waiting, patch.ReasonWaitingForInfrastructure
			if cluster != nil {
				state, reason = patch.Failed, patch.ReasonInvalid
				masters, arbiters, err := machineconfig.ExpectedControlPlaneNodes(*cluster)
				start, waiting, startErr := machineconfig.MayStart(machineconfig.DrainState{
					Cluster: *cluster, Pools: fixture.Pointers(in.Pools), Nodes: []*corev1.Node{ptr.To(fixture.Node("m1", "master")), ptr.To(fixture.Node("w1", "worker"))}, Pending: []string{"m1", "w1"},
				})
				for _, err := range []error{in.Validate(), err, startErr} {
					if masters+arbiters+len(start)+len(waiting) > 0 || !errors.Is(err, topology.ErrClusterNotRead) {
						t.Errorf("%d masters and %d arbiters, %v start, %v wait, %v", masters, arbiters, start, waiting, err)
					}
				}
			}
			for _, in.Policy = range []machineconfig.DrainPolicy{"", machineconfig.DrainNever, machineconfig.DrainWorkers} {
				decided, err := machineconfig.DrainRequired(in.Inputs)
				if decided != (machineconfig.DrainDecision{}) || !errors.Is(err, topology.ErrClusterNotRead) {
					t.Errorf("%+v, %v", decided, err)
				}
			}
			d := decision.Decide(in)
			if d.Result == nil || d.Result.State != state || d.Result.Reason != reason || d.Restarts || d.KubeletConfig.Intent != nil || deletes(d) {
				t.Errorf("%+v", d)
			}
			n := fixture.Annotated(fixture.Node("m1", "master"), map[string]string{machineconfig.CurrentConfigAnnotation: "rendered-1"})
			if step := decision.AnnotateTopology(in, &n); step.Intent != nil || step.Release || step.Result == nil || step.Result.State != state {
				t.Errorf("%+v", step)
			}
			for _, in := range []decision.Inputs{in, {Inputs: machineconfig.Inputs{Cluster: cluster}}} {
				if result := decision.Observe(in, decision.Decision{}); result.State != state {
					t.Errorf("Observe: %s", result)
				}
			}
		})
	}
}
