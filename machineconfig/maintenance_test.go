package machineconfig_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/machineconfig"
)

// TestMaintenance shows R-MCO-4: what waits in a paused pool is reported.
func TestMaintenance(t *testing.T) {
	// rendered is a pool whose nodes are to have config, made of the sources, and that was up to date with those before.
	rendered := func(name, config string, sources, before []string, change ...func(*mcfgv1.MachineConfigPool)) mcfgv1.MachineConfigPool {
		p := pool(name, change...)
		p.Spec.Configuration.Name = config
		for _, source := range sources {
			p.Spec.Configuration.Source = append(p.Spec.Configuration.Source, corev1.ObjectReference{Name: source})
		}
		for _, source := range before {
			p.Status.Configuration.Source = append(p.Status.Configuration.Source, corev1.ObjectReference{Name: source})
		}
		return p
	}
	has := func(n corev1.Node, current, desired string) corev1.Node {
		return annotated(n, map[string]string{machineconfig.CurrentConfigAnnotation: current, machineconfig.DesiredConfigAnnotation: desired})
	}
	master, worker := node("m1", "master", "worker"), node("w1", "worker")
	base := []string{"00-master", "99-master-ssh"}
	for _, test := range []struct {
		name  string
		pools []mcfgv1.MachineConfigPool
		nodes []corev1.Node
		want  []string
	}{
		{"nothing is paused", []mcfgv1.MachineConfigPool{rendered("master", "r2", base, base)}, []corev1.Node{has(master, "r1", "r1")}, nil},
		{"nothing waits", []mcfgv1.MachineConfigPool{rendered("master", "r1", base, base, paused)}, []corev1.Node{has(master, "r1", "r1")}, nil},
		{"the pool's config waits", []mcfgv1.MachineConfigPool{rendered("master", "r2", append(base[:2:2], "99-master-generated-kubelet"), base, paused)}, []corev1.Node{has(master, "r1", "r1")},
			[]string{"master: kubelet configuration, for 1 node"}},
		{"the node's config waits", []mcfgv1.MachineConfigPool{rendered("master", "", base, base, paused)}, []corev1.Node{has(master, "r1", "r2")},
			[]string{"master: changed contents of machine configs, for 1 node"}},
		{"several kinds", []mcfgv1.MachineConfigPool{rendered("master", "r2", []string{"00-master", "99-master-sno-graceful-shutdown", "99-master-generated-registries",
			"99-master-generated-kubelet-1", "50-mine", "99-master-generated-containerruntime"}, base, paused)}, []corev1.Node{has(master, "r1", "r1")},
			[]string{"master: SSH keys, container runtime configuration, graceful shutdown, image registries, kubelet configuration, machine configs, for 1 node"}},
		{"several pools", []mcfgv1.MachineConfigPool{rendered("worker", "r9", base, base, paused), rendered("master", "r2", base, base, paused)},
			[]corev1.Node{has(master, "r1", "r1"), has(worker, "r8", "r8"), has(node("w2", "worker"), "r9", "r9"), has(node("w3", "worker"), "r8", "r8")},
			[]string{"master: changed contents of machine configs, for 1 node", "worker: changed contents of machine configs, for 2 nodes"}},
		{"a node without a daemon", []mcfgv1.MachineConfigPool{rendered("master", "r2", base, base, paused)}, []corev1.Node{master}, nil},
		{"a Windows node", []mcfgv1.MachineConfigPool{rendered("worker", "r9", base, base, paused)}, []corev1.Node{has(windows(node("x1", "worker")), "r8", "r8")}, nil},
		{"no pools", nil, []corev1.Node{has(master, "r1", "r2")}, nil},
	} {
		got, err := machineconfig.Maintenance(pointers(test.pools), pointers(test.nodes))
		var lines []string
		for _, waiting := range got {
			lines = append(lines, waiting.String())
		}
		if diff := cmp.Diff(test.want, lines); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", test.name, err, diff)
		}
	}
	both := node("x", "infra", "gpu")
	if _, err := machineconfig.Maintenance(pointers([]mcfgv1.MachineConfigPool{pool("infra"), pool("gpu")}), []*corev1.Node{&both}); !errors.Is(err, machineconfig.ErrPools) {
		t.Errorf("a node in two pools: %v", err)
	}
}
