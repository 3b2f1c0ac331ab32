package machineconfig_test

import (
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology"
)

// single is a cluster of one node at rest, with a router that asks for an hour.
func single(change ...func(*machineconfig.Inputs)) machineconfig.Inputs {
	in := machineconfig.Inputs{
		Cluster: clusterOf(sr), Nodes: []corev1.Node{node("m1", "master", "worker")}, Pools: []mcfgv1.MachineConfigPool{pool("worker"), pool("master")},
		Pods: []corev1.Pod{pod("m1", false, 45), pod("m1", true, 20), pod("elsewhere", false, 170)},
	}
	for _, f := range change {
		f(&in)
	}
	return in
}

// written is the same with both objects as this module makes them, with grace periods in seconds.
func written(total string, inhibit string, critical string) func(*machineconfig.Inputs) {
	return func(in *machineconfig.Inputs) {
		in.KubeletConfigs = append(in.KubeletConfigs, kubeletConfig("sno-graceful-shutdown", "master", us, periods(total, critical)))
		in.MachineConfig = &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{Name: "99-master-sno-graceful-shutdown",
			ManagedFields: []metav1.ManagedFieldsEntry{entry(us, `{"f:spec":{"f:config":{}}}`)}}}
		in.MachineConfig.Spec.Config = runtime.RawExtension{Raw: []byte(`{"storage":{"files":[{"contents":{"source":"data:text/plain;charset=utf-8;base64,` +
			base64.StdEncoding.EncodeToString([]byte("[Login]\nInhibitDelayMaxSec="+inhibit+"\n")) +
			`"},"mode":420,"overwrite":true,"path":"/etc/systemd/logind.conf.d/90-sno-graceful-shutdown.conf"}]},"ignition":{"version":"3.2.0"}}`)}
	}
}

func inPool(change func(*mcfgv1.MachineConfigPool)) func(*machineconfig.Inputs) {
	return func(in *machineconfig.Inputs) { change(&in.Pools[1]) }
}

func others(name, forPool, configuration string) func(*machineconfig.Inputs) {
	return func(in *machineconfig.Inputs) {
		in.KubeletConfigs = append(in.KubeletConfigs, kubeletConfig(name, forPool, person, configuration))
	}
}

func optOut(object metav1.Object) {
	object.SetAnnotations(map[string]string{patch.OptOutAnnotation: "machineconfig"})
}

func TestDecide(t *testing.T) {
	inForce := written("1m30s", "90", "30s")
	secondNode := func(in *machineconfig.Inputs) { in.Nodes = append(in.Nodes, node("w1", "worker")) }
	set := func(mode machineconfig.GracefulShutdown) func(*machineconfig.Inputs) {
		return func(in *machineconfig.Inputs) { in.Graceful = mode }
	}
	slow := func(seconds int64, critical bool) func(*machineconfig.Inputs) {
		return func(in *machineconfig.Inputs) { in.Pods = append(in.Pods, pod("m1", critical, seconds)) }
	}
	for _, test := range []struct {
		name string
		in   machineconfig.Inputs
		// total and critical are what is applied, empty when nothing is.
		total, critical string
		deletes         bool
		restarts        bool
		reason          string
	}{
		{name: "one node", in: single(), total: "1m30s", critical: "30s", restarts: true},
		{name: "in force", in: single(inForce), total: "1m30s", critical: "30s"},
		{name: "MachineConfig is gone", in: single(inForce, func(in *machineconfig.Inputs) { in.MachineConfig = nil }), total: "1m30s", critical: "30s", restarts: true},
		{name: "logind allows less", in: single(written("1m30s", "5", "30s")), total: "1m30s", critical: "30s", restarts: true},
		{name: "a pod with a longer end", in: single(inForce, slow(100, false)), total: "2m30s", critical: "30s", restarts: true},
		{name: "a critical pod with a longer end", in: single(inForce, slow(31, true)), total: "2m0s", critical: "1m0s", restarts: true},
		{name: "a longer end within the step", in: single(inForce, slow(60, false)), total: "1m30s", critical: "30s"},
		{name: "no pod needs as long any more", in: single(written("2m30s", "150", "1m0s")), total: "2m30s", critical: "1m0s"},
		{name: "one kind grows, the other does not shrink", in: single(written("2m30s", "150", "1m30s"), slow(61, false)), total: "3m0s", critical: "1m30s", restarts: true},
		{name: "a lower bound takes something back", in: single(written("3m0s", "180", "1m30s"), func(in *machineconfig.Inputs) { in.ShutdownBound = time.Minute }),
			total: "1m0s", critical: "30s", restarts: true},
		{name: "a higher bound", in: single(slow(3600, false), func(in *machineconfig.Inputs) { in.ShutdownBound = 10 * time.Minute }), total: "10m0s", critical: "30s", restarts: true},
		{name: "pool is updating", in: single(inPool(updating)), reason: machineconfig.ReasonSettling},
		{name: "pool is updating, nothing to change", in: single(inForce, inPool(updating)), total: "1m30s", critical: "30s"},
		{name: "pool is updating, a pod with a longer end", in: single(inForce, inPool(updating), slow(100, false)), reason: machineconfig.ReasonSettling},
		{name: "pool says nothing", in: single(inPool(func(p *mcfgv1.MachineConfigPool) { p.Status.Conditions = nil })), reason: machineconfig.ReasonSettling},
		{name: "pool is paused", in: single(inPool(paused), inPool(updating)), total: "1m30s", critical: "30s", restarts: true},

		{name: "a second node", in: single(secondNode), reason: machineconfig.ReasonNotNeeded},
		{name: "a second node comes", in: single(inForce, secondNode), deletes: true, restarts: true, reason: machineconfig.ReasonNotNeeded},
		{name: "a second node comes while the pool is updating", in: single(inForce, secondNode, inPool(updating)), deletes: true, restarts: true, reason: machineconfig.ReasonNotNeeded},
		{name: "no node", in: single(func(in *machineconfig.Inputs) { in.Nodes = []corev1.Node{} }), reason: machineconfig.ReasonNotNeeded},
		{name: "the only node is gone", in: single(inForce, func(in *machineconfig.Inputs) { in.Nodes = []corev1.Node{} }), deletes: true, restarts: true, reason: machineconfig.ReasonNotNeeded},
		{name: "the KubeletConfig alone is left", in: single(inForce, secondNode, func(in *machineconfig.Inputs) { in.MachineConfig = nil }), deletes: true, restarts: true, reason: machineconfig.ReasonNotNeeded},
		{name: "the MachineConfig alone is left", in: single(inForce, secondNode, func(in *machineconfig.Inputs) { in.KubeletConfigs = nil }), deletes: true, restarts: true, reason: machineconfig.ReasonNotNeeded},
		{name: "the only node has no role", in: single(func(in *machineconfig.Inputs) { in.Nodes[0].Labels = nil }, slow(100, false)), total: "2m30s", critical: "30s", restarts: true},
		{name: "a worker is the only node", in: single(func(in *machineconfig.Inputs) { in.Nodes[0] = node("m1", "worker") }, slow(100, false)), total: "2m30s", critical: "30s", restarts: true},
		{name: "a second node runs Windows", in: single(func(in *machineconfig.Inputs) { in.Nodes = append(in.Nodes, windows(node("x1", "worker"))) }), reason: machineconfig.ReasonNotNeeded},
		{name: "switched on with a second node", in: single(secondNode, set(machineconfig.GracefulOn)), total: "1m30s", critical: "30s", restarts: true},
		{name: "switched off", in: single(inForce, set(machineconfig.GracefulOff)), deletes: true, restarts: true, reason: machineconfig.ReasonNotNeeded},
		{name: "one node, but highly available", in: single(func(in *machineconfig.Inputs) { in.Cluster = clusterOf(ha) }), reason: machineconfig.ReasonNotNeeded},
		{name: "switched on, highly available", in: single(func(in *machineconfig.Inputs) { in.Cluster = clusterOf(ha) }, set(machineconfig.GracefulOn)), total: "1m30s", critical: "30s", restarts: true},

		{name: "a Cluster that nobody read", in: single(inForce, func(in *machineconfig.Inputs) { in.Cluster = &topology.Cluster{} }), reason: machineconfig.ReasonInvalid},
		{name: "half a Cluster", in: single(func(in *machineconfig.Inputs) { in.Cluster = &topology.Cluster{ControlPlane: topology.ReadingOf(sr)} }), reason: machineconfig.ReasonInvalid},
		{name: "topology not read", in: single(inForce, func(in *machineconfig.Inputs) { in.Cluster = nil }), reason: machineconfig.ReasonWaitingForInfrastructure},
		{name: "nodes not read", in: single(inForce, func(in *machineconfig.Inputs) { in.Nodes = nil }), reason: machineconfig.ReasonWaitingForNodes},
		{name: "pods not read", in: single(inForce, func(in *machineconfig.Inputs) { in.Pods = nil }), reason: machineconfig.ReasonWaitingForNodes},
		{name: "no pools", in: single(func(in *machineconfig.Inputs) { in.Pools = nil }), reason: machineconfig.ReasonWaitingForObject},
		{name: "pool has other labels", in: single(inPool(func(p *mcfgv1.MachineConfigPool) {
			p.Labels = map[string]string{"a": "b", "pools.operator.machineconfiguration.openshift.io/worker": ""}
		})), reason: machineconfig.ReasonWaitingForObject},
		{name: "pool cannot be selected", in: single(inPool(func(p *mcfgv1.MachineConfigPool) { p.Labels = nil })), reason: machineconfig.ReasonWaitingForObject},

		{name: "a person's KubeletConfig", in: single(others("theirs", "master", `{"maxPods":500}`)), reason: machineconfig.ReasonFieldOwnedByOther},
		{name: "a person's KubeletConfig with grace periods", in: single(others("theirs", "master", periods("5m0s", "1m0s"))), reason: machineconfig.ReasonFieldOwnedByOther},
		{name: "a person's KubeletConfig comes later", in: single(inForce, others("theirs", "master", `{"maxPods":500}`)), deletes: true, restarts: true, reason: machineconfig.ReasonFieldOwnedByOther},
		{name: "a person's KubeletConfig for workers", in: single(others("theirs", "worker", `{"maxPods":500}`)), total: "1m30s", critical: "30s", restarts: true},
		{name: "one that selects nothing", in: single(others("theirs", "worker", ""), func(in *machineconfig.Inputs) { in.KubeletConfigs[0].Spec.MachineConfigPoolSelector = nil }), total: "1m30s", critical: "30s", restarts: true},
		{name: "a person's KubeletConfig of our name", in: single(others("sno-graceful-shutdown", "master", "{}")), reason: machineconfig.ReasonFieldOwnedByOther},
		{name: "a person put something into ours", in: single(inForce, func(in *machineconfig.Inputs) {
			in.KubeletConfigs[0].ManagedFields = append(in.KubeletConfigs[0].ManagedFields, entry(person, `{"f:spec":{"f:kubeletConfig":{"f:maxPods":{}}}}`))
		}), reason: machineconfig.ReasonFieldOwnedByOther},
		{name: "that, and it is not needed any more", in: single(inForce, secondNode, func(in *machineconfig.Inputs) {
			in.KubeletConfigs[0].ManagedFields = append(in.KubeletConfigs[0].ManagedFields, entry(person, `{"f:spec":{"f:logLevel":{}}}`))
		}), reason: machineconfig.ReasonFieldOwnedByOther},
		{name: "a person's MachineConfig of our name", in: single(inForce, func(in *machineconfig.Inputs) {
			in.MachineConfig.ManagedFields = []metav1.ManagedFieldsEntry{entry(person, `{"f:spec":{"f:config":{}}}`)}
		}), reason: machineconfig.ReasonFieldOwnedByOther},

		{name: "opted out on the operator", in: single(inForce, func(in *machineconfig.Inputs) {
			in.MachineConfiguration = &operatorv1.MachineConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
			optOut(in.MachineConfiguration)
		}), deletes: true, restarts: true, reason: machineconfig.ReasonOptedOut},
		{name: "opted out on the pool", in: single(inForce, func(in *machineconfig.Inputs) { optOut(&in.Pools[1]) }), deletes: true, restarts: true, reason: machineconfig.ReasonOptedOut},
		{name: "opted out on the KubeletConfig", in: single(inForce, func(in *machineconfig.Inputs) { optOut(&in.KubeletConfigs[0]) }), deletes: true, restarts: true, reason: machineconfig.ReasonOptedOut},
		{name: "opted out on the MachineConfig", in: single(inForce, func(in *machineconfig.Inputs) { optOut(in.MachineConfig) }), deletes: true, restarts: true, reason: machineconfig.ReasonOptedOut},
		{name: "opted out on another pool", in: single(inForce, func(in *machineconfig.Inputs) { optOut(&in.Pools[0]) }), total: "1m30s", critical: "30s"},
		{name: "nothing to give back", in: single(func(in *machineconfig.Inputs) { optOut(&in.Pools[1]) }), reason: machineconfig.ReasonOptedOut},

		{name: "garbage in ours", in: single(inForce, func(in *machineconfig.Inputs) {
			in.KubeletConfigs[0].Spec.KubeletConfig.Raw = []byte(`{"shutdownGracePeriod":"soon"}`)
		}), reason: machineconfig.ReasonInvalid},
		{name: "unreadable managedFields", in: single(inForce, func(in *machineconfig.Inputs) {
			in.MachineConfig.ManagedFields = []metav1.ManagedFieldsEntry{entry(us, `garbage`)}
		}), reason: machineconfig.ReasonInvalid},
		{name: "too low a bound", in: single(func(in *machineconfig.Inputs) { in.ShutdownBound = time.Second }), reason: machineconfig.ReasonInvalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := machineconfig.Decide(test.in)
			var applied struct {
				Total    string `json:"shutdownGracePeriod"`
				Critical string `json:"shutdownGracePeriodCriticalPods"`
			}
			if intent := got.KubeletConfig.Intent; intent != nil {
				if err := json.Unmarshal(intent.Spec.KubeletConfig.Raw, &applied); err != nil {
					t.Fatal(err)
				}
			}
			reason := ""
			if got.Result != nil {
				reason = got.Result.Reason
			}
			deletes := got.KubeletConfig.Delete || got.MachineConfig.Delete
			if applied.Total != test.total || applied.Critical != test.critical || deletes != test.deletes || got.Restarts != test.restarts || reason != test.reason {
				t.Errorf("%s and %s, deletes %t, restarts %t, %v; want %s and %s, %t, %t, %s",
					applied.Total, applied.Critical, deletes, got.Restarts, got.Result, test.total, test.critical, test.deletes, test.restarts, test.reason)
			}
			if (got.KubeletConfig.Intent == nil) != (got.MachineConfig.Intent == nil) || deletes && got.KubeletConfig.Intent != nil {
				t.Errorf("half of it: %+v", got)
			}
			if diff := cmp.Diff(got, machineconfig.Decide(test.in)); diff != "" {
				t.Errorf("asked again:\n%s", diff)
			}
		})
	}
}

// Whatever a message says, it says the same of every cluster.
func TestMessagesNameNobodysObjects(t *testing.T) {
	one := machineconfig.Decide(single(others("theirs", "master", `{"maxPods":500}`)))
	other := machineconfig.Decide(single(others("performance-sno", "master", `{}`)))
	if one.Result.Message != other.Result.Message {
		t.Errorf("%q and %q", one.Result.Message, other.Result.Message)
	}
}

// Both objects with every field, as they are sent.
func TestObjects(t *testing.T) {
	decision := machineconfig.Decide(single())
	for _, test := range []struct {
		name string
		got  any
		want string
	}{
		{"KubeletConfig", decision.KubeletConfig.Intent, `{
			"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "KubeletConfig", "metadata": {"name": "sno-graceful-shutdown"},
			"spec": {
				"machineConfigPoolSelector": {"matchLabels": {"pools.operator.machineconfiguration.openshift.io/master": ""}},
				"kubeletConfig": {"shutdownGracePeriod": "1m30s", "shutdownGracePeriodCriticalPods": "30s"}}}`},
		{"MachineConfig", decision.MachineConfig.Intent, `{
			"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
			"metadata": {"name": "99-master-sno-graceful-shutdown", "labels": {"machineconfiguration.openshift.io/role": "master"}},
			"spec": {"config": {"ignition": {"version": "3.2.0"}, "storage": {"files": [{
				"path": "/etc/systemd/logind.conf.d/90-sno-graceful-shutdown.conf", "mode": 420, "overwrite": true,
				"contents": {"source": "data:text/plain;charset=utf-8;base64,W0xvZ2luXQpJbmhpYml0RGVsYXlNYXhTZWM9OTAK"}}]}}}}`},
	} {
		text, err := json.Marshal(test.got)
		if err != nil {
			t.Fatal(err)
		}
		var got, want any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(test.want), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	text, err := base64.StdEncoding.DecodeString("W0xvZ2luXQpJbmhpYml0RGVsYXlNYXhTZWM9OTAK")
	if want := "[Login]\nInhibitDelayMaxSec=90\n"; err != nil || string(text) != want {
		t.Errorf("%q, %v, want %q", text, err, want)
	}
}

// However often pods come and go, the grace periods change only a few times, and never become shorter.
func TestGracePeriodsSettle(t *testing.T) {
	in := single()
	changes := 0
	var last machineconfig.GracePeriods
	for turn := range int64(400) {
		in.Pods = []corev1.Pod{pod("m1", false, turn*37%200), pod("m1", true, turn*53%90)}
		decision := machineconfig.Decide(in)
		if decision.Restarts {
			changes++
		}
		config := kubeletConfig("sno-graceful-shutdown", "master", us, string(decision.KubeletConfig.Intent.Spec.KubeletConfig.Raw))
		file := &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{Name: "99-master-sno-graceful-shutdown", ManagedFields: config.ManagedFields}}
		file.Spec.Config = *decision.MachineConfig.Intent.Spec.Config
		in.KubeletConfigs, in.MachineConfig = []mcfgv1.KubeletConfig{config}, file
		var now struct {
			Total    metav1.Duration `json:"shutdownGracePeriod"`
			Critical metav1.Duration `json:"shutdownGracePeriodCriticalPods"`
		}
		if err := json.Unmarshal(config.Spec.KubeletConfig.Raw, &now); err != nil {
			t.Fatal(err)
		}
		if now.Total.Duration < last.Total {
			t.Fatalf("turn %d: shorter", turn)
		}
		last = machineconfig.GracePeriods{Total: now.Total.Duration, Critical: now.Critical.Duration}
	}
	if changes > 8 {
		t.Errorf("%d restarts", changes)
	}
	if machineconfig.Decide(in).Restarts {
		t.Error("never at rest")
	}
}

// Where there is no node, the message speaks of no other nodes.
func TestNoNode(t *testing.T) {
	decision := machineconfig.Decide(single(func(in *machineconfig.Inputs) { in.Nodes = []corev1.Node{} }))
	if want := "There is no node"; decision.Result == nil || decision.Result.Message != want {
		t.Errorf("%v, want %q", decision.Result, want)
	}
}
