// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/e2e/framework/steps"
	"github.com/solonode/sno/e2e/framework/suite"
)

const (
	recordFolder = "/var/lib/sno-e2e-shutdown"
	// Seconds that the pods need to end.
	ordinaryWork, criticalWork = 4, 1
	// endScript records SIGTERM and its end, and hookScript the call of the hook.
	endScript = `say() { echo "$EPOCHREALTIME $1" >>/record/%[1]s; }
trap 'say TERM; for i in {1..%[2]d}; do sleep 0.5; say WORK; done; say END; exit 0' TERM
say START
while :; do sleep 0.1; done`
	hookScript = `echo "$EPOCHREALTIME HOOK" >>/record/%s`
	halves     = 2

	kubeletConfigFile = "/var/lib/kubelet/config.yaml"
	// slack is the tolerance for clocks of processes and records.
	slack = 500 * time.Millisecond
)

// Graceful shutdown with a real kubelet, a real logind, and a node that is powered off (R-MCO-3).
var _ = Describe("A node that is powered off", func() {
	var (
		e               *Env
		node, namespace string
	)
	BeforeEach(func(ctx SpecContext) {
		e = cluster(ctx)
		node, namespace = lastWorker(ctx, e).Name, newNamespace(ctx, e)
	}, starting)

	It("ends its pods in order, with hooks and grace periods, with the configuration that machineconfig computes, and all at once without it",
		NodeTimeout(20*time.Minute), func(ctx SpecContext) {
			without := powerOff(ctx, e, node, namespace)
			configure(ctx, e, node)
			with := powerOff(ctx, e, node, namespace)
			Expect(without.fault()).NotTo(BeEmpty(), "without the configuration the pods also ended in order, so this proves nothing")
			record(suite.Row{
				What:     fmt.Sprintf("Node powered off: how a pod ends that needs %d s for it", ordinaryWork),
				Measured: with.String(), Bound: "hook, its whole grace period, critical pods after it", Compared: "without the configuration: " + without.String(),
				Held: with.fault() == "",
			})
		})
})

// powerOff runs both pods on the node, powers it off and on again, and returns the records.
func powerOff(ctx context.Context, e *Env, node, namespace string) ends {
	GinkgoHelper()
	// logind is not started at boot, and a kubelet can only inhibit a shutdown with it.
	onNode(ctx, e.Kind, node, "sh", "-c", "rm --recursive --force "+recordFolder+"; systemctl start systemd-logind")
	pods := shutdownPods(node, namespace)
	running(ctx, e, pods...)
	for _, pod := range pods {
		Eventually(ctx, e.Kind.Exec).WithArguments(node, "grep", "START", recordFolder+"/"+pod.Name).ShouldNot(BeEmpty())
	}
	off, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	// The command may return no answer.
	_, asked := e.Kind.Exec(off, node, "systemctl", "poweroff")
	_, err := e.Kind.Engine().Output(off, "wait", node)
	Expect(err).NotTo(HaveOccurred(), "wait until the node is off: %v", asked)
	Expect(e.Kind.Restart(ctx, node)).To(Succeed())
	var both [2]ending
	for i, pod := range pods {
		both[i] = readEnding(onNode(ctx, e.Kind, node, "cat", recordFolder+"/"+pod.Name))
		Expect(both[i]).To(HaveKey(terminated), pod.Name)
		Expect(e.Kind.Clientset().CoreV1().Pods(namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})).To(Succeed())
	}
	return ends{both[0], both[1]}
}

// shutdownPods returns an ordinary and a critical pod without controllers.
func shutdownPods(node, namespace string) []*corev1.Pod {
	ordinary := scriptPod(namespace, "ordinary", fmt.Sprintf(endScript, "ordinary", halves*ordinaryWork), 2*ordinaryWork)
	critical := scriptPod(namespace, "critical", fmt.Sprintf(endScript, "critical", halves*criticalWork), 2*criticalWork)
	critical.Spec.PriorityClassName = "system-node-critical"
	both := []*corev1.Pod{ordinary, critical}
	for _, pod := range both {
		pod.Spec.NodeName, pod.Spec.RestartPolicy = node, corev1.RestartPolicyNever
		pod.Spec.Volumes = []corev1.Volume{{
			Name: "record", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: recordFolder, Type: ptr.To(corev1.HostPathDirectoryOrCreate)}},
		}}
		pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
			Exec: &corev1.ExecAction{Command: []string{"bash", "-c", fmt.Sprintf(hookScript, pod.Name)}},
		}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "record", MountPath: "/record"}}
	}
	return both
}

// configure applies to the kubelet and logind what a machine-config operator makes of the module's decision, until the
// end of the spec, and waits until they use it.
func configure(ctx context.Context, e *Env, node string) {
	GinkgoHelper()
	kube := e.Kind.Clientset().CoreV1()
	pods := suite.Must(kube.Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node}))
	fields, file, content := steps.GracefulShutdown(*suite.Must(kube.Nodes().Get(ctx, node, metav1.GetOptions{})), pods.Items, 0)
	reload := func(ctx context.Context) {
		onNode(ctx, e.Kind, node, "systemctl", "restart", "systemd-logind", "kubelet")
	}
	before := onNode(ctx, e.Kind, node, "cat", kubeletConfigFile)
	DeferCleanup(func(ctx SpecContext) {
		onNode(ctx, e.Kind, node, "rm", "--force", file)
		writeFile(ctx, e.Kind, node, kubeletConfigFile, []byte(before+"\n"))
		reload(ctx)
	})
	config := map[string]any{}
	Expect(yaml.Unmarshal([]byte(before), &config)).To(Succeed())
	maps.Copy(config, fields)
	merged := suite.Must(yaml.Marshal(config))
	writeFile(ctx, e.Kind, node, kubeletConfigFile, merged)
	writeFile(ctx, e.Kind, node, file, content)
	reload(ctx)
	total := suite.Must(time.ParseDuration(fmt.Sprint(fields["shutdownGracePeriod"])))
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		raw, err := e.Kind.Clientset().CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes", node, "proxy", "configz").DoRaw(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		var reported struct {
			Config map[string]any `json:"kubeletconfig"`
		}
		g.Expect(json.Unmarshal(raw, &reported)).To(Succeed())
		for name, value := range fields {
			g.Expect(reported.Config).To(HaveKeyWithValue(name, value), "the configuration that the kubelet reports")
		}
		inhibitors, err := e.Kind.Exec(ctx, node, "systemd-inhibit", "--list", "--no-pager")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(inhibitors).To(ContainSubstring("kubelet"), "what inhibits a shutdown")
		const logind = "org.freedesktop.login1"
		delay, err := e.Kind.Exec(ctx, node, "busctl", "get-property", logind, "/org/freedesktop/login1", logind+".Manager", "InhibitDelayMaxUSec")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(delay).To(Equal(fmt.Sprintf("t %d", total.Microseconds())), "the delay that logind permits")
	}).Should(Succeed())
}

// ending is a pod's own record of its termination: the times of its words, and of the last of them.
type ending map[string]time.Time

const hookCalled, terminated, finished, lastWord = "HOOK", "TERM", "END", "last"

// readEnding parses a record: lines of a time in seconds and a word. The last line may be incomplete.
func readEnding(text string) ending {
	e := ending{}
	for line := range strings.Lines(text) {
		stamp, word, _ := strings.Cut(strings.TrimSpace(line), " ")
		if seconds, err := strconv.ParseFloat(stamp, 64); err == nil && word != "" {
			e[word] = time.UnixMicro(int64(seconds * 1e6))
			e[lastWord] = e[word]
		}
	}
	return e
}

func (e ending) has(word string) bool { return !e[word].IsZero() }

func (e ending) String() string {
	called := "hook called"
	if !e.has(hookCalled) {
		called = "no hook"
	}
	if !e.has(finished) {
		return called + ", killed after " + suite.Seconds(e[lastWord].Sub(e[terminated]))
	}
	return called + ", done after " + suite.Seconds(e[finished].Sub(e[terminated]))
}

type ends struct{ ordinary, critical ending }

func (e ends) String() string {
	order := "with it"
	if e.inTurn() {
		order = "after it"
	}
	return e.ordinary.String() + ", critical pods terminated " + order
}

// inTurn reports whether the critical pod was terminated after the ordinary one had finished.
func (e ends) inTurn() bool {
	return e.ordinary.has(finished) && e.critical[terminated].After(e.ordinary[finished].Add(-slack))
}

// fault returns nothing if the hooks were called, both pods finished, and the critical one was terminated last.
func (e ends) fault() string {
	for _, pod := range []ending{e.ordinary, e.critical} {
		if !pod.has(hookCalled) || pod[hookCalled].After(pod[terminated]) || !pod.has(finished) {
			return pod.String()
		}
	}
	if !e.inTurn() {
		return e.String()
	}
	return ""
}

func TestReadEnding(t *testing.T) {
	at := func(seconds float64) time.Time { return time.UnixMicro(int64(seconds * 1e6)) }
	for name, test := range map[string]struct {
		record string
		want   ending
	}{
		"done":           {"11.0 HOOK\n11.5 TERM\n12.25 END\n", ending{hookCalled: at(11), terminated: at(11.5), finished: at(12.25), lastWord: at(12.25)}},
		"killed at work": {"11.5 TERM\n12.0 WORK\n", ending{terminated: at(11.5), "WORK": at(12), lastWord: at(12)}},
		"killed midline": {"11.5 TERM\n12.", ending{terminated: at(11.5), lastWord: at(11.5)}},
	} {
		if diff := cmp.Diff(test.want, readEnding(test.record)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestEndsInOrder(t *testing.T) {
	second := func(n int) time.Time { return time.Unix(int64(n), 0) }
	pod := func(from int) ending {
		return ending{hookCalled: second(from), terminated: second(from + 1), finished: second(from + 5), lastWord: second(from + 5)}
	}
	for name, test := range map[string]struct {
		change func(*ends)
		want   string
	}{
		"one after the other":       {func(*ends) {}, ""},
		"clocks that differ little": {func(e *ends) { e.critical = pod(4); e.critical[terminated] = second(5).Add(-slack / 2) }, ""},
		"both at once":              {func(e *ends) { e.critical = pod(0) }, "hook called, done after 4.00 s, critical pods terminated with it"},
		"without a hook":            {func(e *ends) { delete(e.ordinary, hookCalled) }, "no hook, done after 4.00 s"},
		"critical without a hook":   {func(e *ends) { delete(e.critical, hookCalled) }, "no hook, done after 4.00 s"},
		"hook too late":             {func(e *ends) { e.ordinary[hookCalled] = second(2) }, "hook called, done after 4.00 s"},
		"ordinary one killed":       {func(e *ends) { delete(e.ordinary, finished) }, "hook called, killed after 4.00 s"},
		"critical one killed":       {func(e *ends) { delete(e.critical, finished) }, "hook called, killed after 4.00 s"},
	} {
		e := ends{pod(0), pod(5)}
		test.change(&e)
		if got := e.fault(); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
