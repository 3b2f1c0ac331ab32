// SPDX-License-Identifier: Apache-2.0

package postreboot

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/join"
	"github.com/solonode/sno/install/join/jointest"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

func (m *machine) complete() bool {
	m.Helper()
	c, err := m.CoreV1().ConfigMaps("kube-system").Get(m.Context(), "bootstrap", metav1.GetOptions{})
	return err == nil && c.Data["status"] == "complete"
}

// The node joins with its own two requests, the operators take over and finish, and then all files of the bootstrap
// phase are removed. Before that nothing is removed, and a later run does nothing. The cluster has the status, without
// secrets (R-BIP-2, R-BIP-3, R-BIP-17, R-BIP-23, R-APP-4, U-INS-13, U-INS-14, U-INS-15).
func TestInstallation(t *testing.T) {
	m := newMachine(t, "openshift")
	m.ask("client", jointest.Client(host))
	// Requests that upstream's script would approve stay pending (U-INS-14). Package join tries all of the approver.
	m.ask("client-of-another-node", jointest.Client("worker0"))
	admin := jointest.Client(host)
	admin.User = rest.ImpersonationConfig{UserName: "system:admin", Groups: []string{"system:masters"}}
	m.ask("client-by-an-admin", admin)
	names := make([]string, len(Phases(m.options())))
	for i, p := range Phases(m.options()) {
		names[i] = p.Name
	}
	fixture.Equal(t, "names in the status", []string{"api", "join", "bootstrap-complete", "operators", "available", "clean-data", "clean-scripts", "clean-units", "clean-program"}, names)
	before, own := m.tree(), "Approved "+join.ApprovalReason
	err := m.run(Phases(m.options()),
		step{"there is no such Node", func() {
			fixture.Equal(t, "before the Node exists", map[string]string{"client": own}, jointest.Decided(t, m))
			m.register(corev1.ConditionFalse)
			m.ask("client-again", jointest.Client(host))
			m.ask("serving", jointest.Serving(host, host, "192.0.2.10"))
			m.ask("serving-at-another-address", jointest.Serving(host, host, "192.0.2.11"))
			m.ask("serving-of-another-node", jointest.Serving("worker0", "worker0", "192.0.2.10"))
		}},
		step{"the Node is not Ready", func() { m.register(corev1.ConditionTrue) }},
		step{"no serving certificate", m.serve},
		step{"the control plane: not ready: etcd: ", func() {
			if !m.complete() {
				t.Error("the ConfigMap does not mark the end of the bootstrap phase")
			}
			fixture.Equal(t, "without the operators", before, m.tree())
			m.version("False")
			m.takenOver()
		}},
		step{"the cluster: ClusterVersion is not available: Progressing: Working towards 5.0.0", func() {
			if diff := cmp.Diff(before, m.tree()); diff != "" || m.published()["status"] != "installing" {
				t.Errorf("without ClusterVersion, published %v (-want +got):\n%s", m.published(), diff)
			}
			m.put(node.PostRebootStatus, `{"command": "post-reboot", "error": "example.com refuses https://user:hidden@example.com"}`)
			m.version("True")
		}})
	fixture.NoError(t, err)
	fixture.Equal(t, "approved", map[string]string{"client": own, "serving": own}, jointest.Decided(t, m))
	fixture.NoError(m, os.Remove(filepath.Join(m.root, node.PostRebootStatus)))
	fixture.Equal(t, "left on the machine", kept, m.tree())
	status := m.published()
	if status["status"] != "complete" || !strings.Contains(status["bootstrap-in-place"], `"write-disk"`) || !strings.Contains(status["post-reboot"], "example.com") || strings.Contains(status["post-reboot"], "hidden") {
		t.Errorf("the cluster has the status %v", status)
	}
	if m.reloads != 1 {
		t.Errorf("systemd read its units %d times", m.reloads)
	}
	removed := len(m.removed)
	if err := m.run(Phases(m.options())); err != nil || len(m.removed) != removed || m.reloads != 1 {
		t.Errorf("a second run: %v, removed %v", err, m.removed[removed:])
	}
}

// After a kill at any report, removal or reload the same command continues. The kubelet never requires a missing unit,
// and nothing is removed before the control plane is ready.
func TestKilledAnywhere(t *testing.T) {
	m := newMachine(t, "openshift")
	m.installed()
	kubeconfig := fixture.Must(os.ReadFile(filepath.Join(m.root, node.BootstrapKubeconfig)))
	for killAt := 1; ; killAt++ {
		if err := m.CoreV1().ConfigMaps("kube-system").Delete(t.Context(), "bootstrap", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
			fixture.NoError(m, err)
		}
		fixture.NoError(m, os.RemoveAll(m.root))
		m.writeFiles(string(kubeconfig), "openshift")
		m.serve()
		points := 0
		m.at = func() error {
			if points++; points >= killAt {
				return errKilled
			}
			return nil
		}
		err := m.run(Phases(m.options()))
		m.at = func() error { return nil }
		if points < killAt {
			fixture.NoError(m, err)
			if killAt < 25 {
				t.Errorf("only %d points of a kill", killAt)
			}
			break
		}
		left := m.tree()
		_, dropIn := left[node.UnitDir+"/kubelet.service.d/"+node.RestoreDropIn]
		if _, unit := left[node.UnitDir+"/"+node.RestoreUnit]; dropIn && !unit {
			t.Errorf("killed at %d: the kubelet requires a missing unit", killAt)
		}
		if err := m.run(Phases(m.options())); err != nil {
			t.Fatalf("after a kill at %d: %v; left were %v", killAt, err, left)
		}
		if diff := cmp.Diff(kept, m.tree()); diff != "" {
			t.Fatalf("after a kill at %d (-want +got):\n%s", killAt, diff)
		}
		if !m.complete() {
			t.Errorf("after a kill at %d the bootstrap phase is not complete", killAt)
		}
	}
}

// After a kill inside of a removal, or without a reachable cluster, the same command continues too.
func TestKilledInsideRemoval(t *testing.T) {
	remove := func(paths ...string) func(*machine) {
		return func(m *machine) {
			m.put(ControlPlaneReady, "")
			for _, path := range paths {
				fixture.NoError(m, os.RemoveAll(filepath.Join(m.root, path)))
			}
		}
	}
	data := []string{node.BootstrapSecrets, node.BootstrapConfigs, node.SnapshotDir, node.LogBundle}
	for name, change := range map[string]func(*machine){
		"no kubeconfig":       remove(node.BootstrapKubeconfig),
		"no settings":         remove(node.BootstrapSecrets, node.BootstrapSettings),
		"no snapshot":         remove(node.BootstrapSecrets, node.BootstrapConfigs, node.Snapshot),
		"no data":             remove(data...),
		"one script":          remove(append(data, ControlPlaneReady, node.GatherScript)...),
		"empty folder":        remove(append(data, ControlPlaneReady, node.UnitDir+"/kubelet.service.d/"+node.RestoreDropIn)...),
		"no unit":             remove(append(data, ControlPlaneReady, node.UnitDir+"/kubelet.service.d", node.UnitDir+"/"+node.RestoreUnit)...),
		"program in an image": remove(append(data, ControlPlaneReady, node.GatherScript, node.MastersGatherScript, node.Program)...),
	} {
		t.Run(name, func(t *testing.T) {
			m := &machine{T: t, root: t.TempDir(), at: func() error { return nil }}
			m.writeFiles("", "openshift")
			change(m)
			fixture.NoError(t, m.run(Phases(m.options())))
			fixture.Equal(t, "", kept, m.tree())
		})
	}
}

// Other units are kept. The preset file is removed if it has no other lines. A reload that fails is an error.
func TestOtherUnits(t *testing.T) {
	m := &machine{T: t, root: t.TempDir(), at: func() error { return nil }}
	m.writeFiles("", "openshift")
	m.put(ControlPlaneReady, "")
	other := node.UnitDir + "/kubelet.service.d/20-logging.conf"
	m.put(other, "[Service]\n")
	m.put(node.Preset, "enable post-reboot.service\nenable etcd-restore.service\n")
	o := m.options()
	o.Systemctl = func(context.Context, ...string) error { return errKilled }
	fixture.Fails(t, "reload", m.run(Phases(o)), errKilled, "systemctl daemon-reload")
	fixture.NoError(t, m.run(Phases(m.options())))
	got := m.tree()
	if _, is := got[node.Preset]; is || got[other] != "[Service]\n" {
		t.Errorf("left are %v", got)
	}
}

// Without its kubeconfig or valid settings a machine removes nothing.
func TestNothingIsRemoved(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*machine)
		is     error
		text   string
	}{
		"kubeconfig": {func(m *machine) { fixture.NoError(m, os.Remove(filepath.Join(m.root, node.BootstrapKubeconfig))) }, os.ErrNotExist, node.BootstrapKubeconfig},
		"settings":   {func(m *machine) { fixture.NoError(m, os.Remove(filepath.Join(m.root, node.BootstrapSettings))) }, node.ErrSettings, node.BootstrapSettings},
		"created":    {func(m *machine) { m.put(node.BootstrapSettings, "name: master0\ncreated: yesterday\n") }, phase.ErrInput, `created: parsing time "yesterday"`},
		"name":       {func(m *machine) { m.put(node.BootstrapSettings, "name: a b\ncreated: 2026-11-25T08:00:00Z\n") }, phase.ErrInput, `"a b"`},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, "openshift")
			m.installed()
			test.change(m)
			before := m.tree()
			fixture.Fails(t, "", m.run(Phases(m.options())), test.is, test.text)
			fixture.Equal(t, "", before, m.tree())
		})
	}
}

// The error of a phase at its time limit has what it waits for.
func TestLimit(t *testing.T) {
	m := newMachine(t, "openshift")
	fails := func(name string, limit time.Duration, want string) {
		t.Helper()
		phases := Phases(m.options())
		i := slices.IndexFunc(phases, func(p phase.Phase) bool { return p.Name == name })
		phases[i].Limit = limit
		err := m.run(phases[i : i+1])
		if !errors.Is(err, phase.ErrLimit) || phase.ExitCode(err) != phase.ExitTimeout || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
	m.installed()
	m.report(staticPods[3], state{"True", "True", "False", host, 4, 5})
	// It has time for a whole attempt on a busy machine: that of an interrupted one has another error.
	fails("operators", 5*time.Second, "waiting for the control plane: not ready: kube-scheduler: it is progressing: Progressing for a reason: time limit exceeded of 5s")
	m.put(node.BootstrapKubeconfig, strings.Join([]string{
		"clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]", "contexts: [{name: c, context: {cluster: c}}]", "current-context: c",
	}, "\n"))
	fails("api", time.Second/10, "waiting for the API server: ")
	fails("bootstrap-complete", time.Second/10, "waiting for ConfigMap kube-system/bootstrap: ")
}

// An operator has taken over when it is stable on this node, and its pod of the same revision is Ready. The revision of
// the bootstrap phase may remain (R-BIP-16, R-BIP-17).
func TestOperators(t *testing.T) {
	m := newMachine(t, "openshift")
	m.takenOver()
	apiserver := staticPods[1]
	for name, test := range map[string]struct {
		state state
		pod   string
		ready corev1.ConditionStatus
		want  string
	}{
		"steady":             {steady, "4", "True", ""},
		"bootstrap revision": {state{"True", "False", "False", host, 1, 1}, "1", "True", ""},
		"no Degraded":        {state{"True", "False", "", host, 4, 4}, "4", "True", ""},
		"unavailable":        {state{"False", "False", "False", host, 4, 4}, "4", "True", "it is not available: Available for a reason"},
		"no conditions":      {state{"", "", "", host, 4, 4}, "4", "True", "it is not available"},
		"progressing":        {state{"True", "True", "False", host, 4, 4}, "4", "True", "it is progressing: Progressing for a reason"},
		"no Progressing":     {state{"True", "", "False", host, 4, 4}, "4", "True", "it is progressing"},
		"degraded":           {state{"True", "False", "True", host, 4, 4}, "4", "True", "it is degraded: Degraded for a reason"},
		"later revision":     {state{"True", "False", "False", host, 4, 5}, "4", "True", "the node has revision 4, the latest is 5"},
		"no revision":        {state{"True", "False", "False", host, 0, 0}, "0", "True", "the node has revision 0, the latest is 0"},
		"another node":       {state{"True", "False", "False", "worker0", 4, 4}, "4", "True", "the node has revision 0, the latest is 4"},
		"bootstrap pod":      {steady, "1", "True", `the pod has revision "1", not 4`},
		"pod is not Ready":   {steady, "4", "False", "the pod is not Ready"},
	} {
		t.Run(name, func(t *testing.T) {
			m.T = t
			now := int64(0)
			fixture.NoError(m, m.CoreV1().Pods(apiserver.namespace).Delete(t.Context(), apiserver.name+"-"+host, metav1.DeleteOptions{GracePeriodSeconds: &now}))
			m.report(apiserver, test.state)
			m.pod(apiserver, test.pod, test.ready)
			err := controlPlane{m, &node.Settings{Profile: "openshift", Name: host}}.ready(t.Context())
			switch {
			case test.want == "" && err != nil, test.want != "" && err == nil:
				t.Errorf("error %v, want %q", err, test.want)
			case err != nil && !strings.HasPrefix(err.Error(), "not ready: kube-apiserver: "+test.want):
				t.Errorf("error %v, want %q for kube-apiserver only", err, test.want)
			}
		})
	}
}

// The kubelet is restarted when a static pod has another name, once, also after a failure, and not for a new revision.
func TestReplacedPods(t *testing.T) {
	restarts, o := 0, Options{Root: t.TempDir()}
	var fails error
	o.Systemctl = func(_ context.Context, arguments ...string) error {
		fixture.Equal(t, "systemctl", []string{"restart", "kubelet.service"}, arguments)
		restarts++
		return fails
	}
	for _, test := range []struct {
		what, file, text string
		fails            error
		restarts         int
	}{
		{"as the machine starts", "kube-apiserver-pod.yaml", "metadata: {name: bootstrap-kube-apiserver, namespace: openshift-kube-apiserver}\n", nil, 0},
		{"no change", "other.yaml", "metadata: {name: other}\n", nil, 0},
		{"replaced, and it fails", "kube-apiserver-pod.yaml", "metadata: {name: kube-apiserver, namespace: openshift-kube-apiserver}\n", errKilled, 1},
		{"again", "other.yaml", "", nil, 2},
		{"another revision", "kube-apiserver-pod.yaml", "metadata: {name: kube-apiserver, namespace: openshift-kube-apiserver, labels: {revision: '3'}}\n", nil, 2},
		{"another namespace", "kube-scheduler-pod.yaml", "metadata: {name: openshift-kube-scheduler, namespace: openshift-kube-scheduler}\n", nil, 3},
	} {
		fixture.Put(t, o.Root, node.ManifestDir+"/"+test.file, test.text)
		fails = test.fails
		if err := o.restartKubelet(t.Context()); !errors.Is(err, test.fails) || restarts != test.restarts {
			t.Errorf("%s: %d restarts, want %d: %v", test.what, restarts, test.restarts, err)
		}
	}
	fixture.Put(t, o.Root, node.ManifestDir+"/etcd-pod.yaml", "metadata: [")
	fixture.Fails(t, "half a manifest", o.restartKubelet(t.Context()), "static pod etcd-pod.yaml")
}

// Without operators the phase waits for the four pods only.
func TestWithoutOperators(t *testing.T) {
	m := newMachine(t, "kubernetes")
	err := m.run(Phases(m.options())[3:4],
		step{"kube-scheduler: pods", func() {
			for _, s := range staticPods {
				m.pod(s, "1", corev1.ConditionFalse)
			}
		}},
		step{"etcd: the pod is not Ready; kube-apiserver: the pod is not Ready", func() {
			for _, s := range staticPods {
				m.pod(s, "1", corev1.ConditionTrue)
			}
		}})
	if err != nil {
		t.Error(err)
	}
}

// The names, and the label with the revision, are those of sno-render's pods.
func TestNamesOfPods(t *testing.T) {
	for i, file := range []string{
		"etcd/testdata/openshift/one-pod.yaml", "kubeapiserver/testdata/one-node-openshift/pod.yaml",
		"kubecontrollermanager/testdata/openshift/pod.yaml", "kubescheduler/testdata/openshift/pod.yaml",
	} {
		text := fixture.Must(os.ReadFile("../../render/" + file))
		var pod corev1.Pod
		fixture.NoError(t, yaml.Unmarshal(text, &pod))
		if s := staticPods[i]; pod.Name != s.name || pod.Namespace != s.namespace || pod.Labels["revision"] != "REVISION" {
			t.Errorf("%s has the pod %s/%s with the labels %v", file, pod.Namespace, pod.Name, pod.Labels)
		}
	}
}

// The unit is removed after the command has succeeded, also without the program, and remains after a failure
// (R-BIP-18).
func TestUnitRemovesItself(t *testing.T) {
	for name, test := range map[string]struct {
		program string
		inImage bool
		removed bool
	}{
		"succeeds":          {"rm $0", false, true},
		"stays in an image": {"true", true, true},
		"killed before":     {"", false, true},
		"fails":             {"exit 3", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := &machine{T: t, root: t.TempDir()}
			s := node.Settings{ProgramInImage: test.inImage}
			unit, link := node.UnitDir+"/"+node.PostRebootUnit, node.UnitDir+"/multi-user.target.wants/"+node.PostRebootUnit
			m.put(unit, Unit(s))
			m.put(link, "")
			program := s.Executable()
			if test.program != "" {
				fixture.Script(t, m.root, program, test.program)
			}
			fixture.Script(t, m.root, "bin/systemctl", `echo "$@" >>`+m.root+"/calls")
			// systemd would end a unit of type oneshot as failed when its file is removed (U-INS-31).
			line := regexp.MustCompile(`(?m)^Type=exec\nExecStart=/bin/sh -ec '(.*)'$`).FindStringSubmatch(Unit(s))
			if line == nil {
				t.Fatalf("no command in\n%s", Unit(s))
			}
			script := strings.NewReplacer("/"+program, m.root+"/"+program, "/"+node.UnitDir, m.root+"/"+node.UnitDir).Replace(line[1])
			command := exec.CommandContext(t.Context(), "/bin/sh", "-ec", script)
			command.Env = []string{"PATH=" + m.root + "/bin:/usr/bin:/bin"}
			if out, err := command.CombinedOutput(); (err == nil) != test.removed {
				t.Errorf("%v: %s", err, out)
			}
			left := m.tree()
			_, hasUnit := left[unit]
			_, hasLink := left[link]
			if hasUnit == test.removed || hasLink == test.removed || (left["calls"] == "daemon-reload\n") != test.removed {
				t.Errorf("remaining: %v", left)
			}
		})
	}
}
