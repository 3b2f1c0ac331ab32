// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
)

const (
	// installBound is for a pod to start, to lead and to settle, on a busy machine. Released Leases are available at once.
	installBound = 2 * time.Minute
	// takeover is for a Lease of a single node that another pod has released, which is tried every 60 to 132 s.
	takeover = 4 * time.Minute
	// convergence limits the time after the API server answers again. Back-offs have grown to minutes by then.
	convergence = 3 * time.Minute
	// leaderless is the bound for a restart, of which the kubelet delays the second one by 10 s.
	leaderless = 15 * time.Second
	// renewal is for a Lease of a single node, which is renewed each minute.
	renewal = 2 * time.Minute

	// installFolder is a copy of the repository's config folders on a node.
	installFolder = "/sno-install"
)

var _ = Describe("The controllers", func() {
	var e *Env
	BeforeEach(func(ctx SpecContext) { e = cluster(ctx) }, starting)

	It("are installed in one process by `kubectl apply -k config/all`, which follows the topology with its generated rights and without a forbidden request",
		NodeTimeout(15*time.Minute), func(ctx SpecContext) {
			var six []string
			for _, module := range framework.AllModules() {
				six = append(six, module.Account())
			}
			DeferCleanup(func(ctx SpecContext) {
				e.removeDeployments(ctx, framework.AllAccount)
				e.DeployAll(ctx)
			})
			e.removeDeployments(ctx, six...)
			DeferCleanup(func(ctx SpecContext) {
				if CurrentSpecReport().Failed() {
					GinkgoWriter.Println("A missing right may be why a process does not lead or follow:", e.refusals(ctx))
				}
			})
			begun := time.Now()
			e.applyAll(ctx)
			Eventually(ctx, func(g Gomega, ctx context.Context) {
				lease := &coordinationv1.Lease{}
				g.Expect(e.Cluster.Client().Get(ctx, client.ObjectKey{Namespace: framework.SystemNamespace, Name: framework.AllLease}, lease)).To(Succeed())
				g.Expect(lease.Spec.HolderIdentity).To(HaveValue(Not(BeEmpty())), "the holder of the Lease")
			}).WithTimeout(installBound).Should(Succeed())
			took := time.Since(begun)

			// The existing conditions are still those of the six, so only a change shows that the process follows.
			control, infrastructure := e.Scenario.ControlPlaneTopology, e.Scenario.InfrastructureTopology
			DeferCleanup(e.SetTopology, control, infrastructure)
			Expect(e.SetTopology(ctx, control, configv1.HighlyAvailableTopologyMode)).To(Succeed())
			suite.Must(e.WaitReason(ctx, framework.Ingress, waitTimeout, "NotNeeded"))
			Expect(e.SetTopology(ctx, control, infrastructure)).To(Succeed())
			e.WaitSettled(ctx)

			pods := e.controllers(ctx)
			Expect(pods).To(HaveLen(1))
			Expect(pods[0].Status.ContainerStatuses).To(HaveExactElements(HaveField("RestartCount", BeZero())))
			Expect(e.refusals(ctx)).To(BeEmpty())
			record(within("kubectl apply -k config/all, until the process leads", took, installBound))
		})

	It("lead again soon after another class of topology has ended their processes, also when the kubelet waits before it starts them again",
		NodeTimeout(15*time.Minute), func(ctx SpecContext) {
			control, infrastructure := e.Scenario.ControlPlaneTopology, e.Scenario.InfrastructureTopology
			DeferCleanup(e.SetTopology, control, infrastructure)
			var longest time.Duration
			for _, to := range []configv1.TopologyMode{configv1.HighlyAvailableTopologyMode, control} {
				before := e.state(ctx).Pods
				Expect(e.SetTopology(ctx, to, infrastructure)).To(Succeed())
				Eventually(ctx, func(g Gomega, ctx context.Context) {
					leases, pods := &coordinationv1.LeaseList{}, e.controllers(ctx)
					g.Expect(e.Cluster.Client().List(ctx, leases, client.InNamespace(framework.SystemNamespace))).To(Succeed())
					g.Expect(pods).To(HaveLen(len(before)))
					for _, pod := range pods {
						i := slices.IndexFunc(leases.Items, func(l coordinationv1.Lease) bool { return leads(pod, l) })
						g.Expect(i).NotTo(BeNumerically("<", 0), "%s leads", pod.Name)
						status := pod.Status.ContainerStatuses[0]
						g.Expect(before).To(HaveKeyWithValue(pod.Name+" "+string(pod.UID), status.RestartCount-1))
						g.Expect(status.LastTerminationState.Terminated.ExitCode).To(BeZero())
						longest = max(longest, leases.Items[i].Spec.AcquireTime.Sub(status.LastTerminationState.Terminated.FinishedAt.Time))
					}
				}).WithTimeout(installBound).Should(Succeed(), "to %s", to)
			}
			e.WaitSettled(ctx)
			record(within("Nobody leads while another class of topology restarts the pods of the controllers", longest, leaderless))
		})

	DescribeTable("survive it without a restart and without a lost Lease that the API server is unavailable (R-OPS-4)",
		func(ctx SpecContext, length time.Duration) {
			before := e.state(ctx)
			Expect(before.Pods).To(HaveLen(len(framework.AllModules())))
			Expect(len(before.Leases)).To(BeNumerically(">=", len(framework.AllModules())))
			begun := time.Now()
			Expect(e.Outage(ctx, length)).To(Succeed())
			answers := time.Now()
			e.WaitSettled(ctx)
			took := time.Since(answers)
			// A Lease may be lost a little later, and the next outage must not add to this one.
			Eventually(ctx, func(g Gomega, ctx context.Context) {
				leases := &coordinationv1.LeaseList{}
				g.Expect(e.Cluster.Client().List(ctx, leases, client.InNamespace(framework.SystemNamespace))).To(Succeed())
				for _, l := range leases.Items {
					if ptr.Deref(l.Spec.HolderIdentity, "") != "" {
						g.Expect(l.Spec.RenewTime.Time).To(BeTemporally(">", begun.Add(length)), "%s was renewed by %s", l.Name, *l.Spec.HolderIdentity)
					}
				}
			}).WithTimeout(renewal).Should(Succeed())
			Expect(cmp.Diff(before, e.state(ctx))).To(BeEmpty(), "before (-) and after (+)")
			record(suite.Row{
				What:     fmt.Sprintf("API server's static pod stopped for %s, all controllers", length),
				Measured: fmt.Sprintf("0 of %d pods restarted, 0 of %d leases lost, settled %s after it answered", len(before.Pods), len(before.Leases), suite.Seconds(took)),
				Bound:    "none, none, " + suite.Seconds(convergence), Compared: "-", Held: took <= convergence,
			})
		},
		Entry("for one minute", NodeTimeout(12*time.Minute), time.Minute),
		Entry("for two minutes", NodeTimeout(15*time.Minute), 2*time.Minute),
	)
})

// applyAll applies config/all as a person does, with the node's `kubectl apply -k` and an overlay that sets the image,
// and returns when it runs.
func (e *Env) applyAll(ctx context.Context) {
	GinkgoHelper()
	node := nodes(e)[0]
	root := suite.Must(programs.Root(ctx))
	folders := []string{"config"}
	for _, module := range framework.AllModules() {
		folders = append(folders, string(module)+"/config")
	}
	for _, folder := range folders {
		into := installFolder + "/" + filepath.Dir(folder)
		onNode(ctx, e.Kind, node, "mkdir", "--parents", into)
		suite.Must(e.Kind.Engine().Output(ctx, "cp", filepath.Join(root, filepath.FromSlash(folder)), node+":"+into))
	}
	name, tag, tagged := strings.Cut(e.images[programs.KubectlSNO], ":")
	Expect(tagged).To(BeTrue(), "the image of kubectl-sno has a tag: %q", name)
	overlay := fmt.Sprintf(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - ../config/all
images:
  - name: ko://github.com/solonode/sno/cli/cmd/kubectl-sno
    newName: %q
    newTag: %q
`, name, tag)
	writeFile(ctx, e.Kind, node, installFolder+"/overlay/kustomization.yaml", []byte(overlay))
	onNode(ctx, e.Kind, node, "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "apply", "-k", installFolder+"/overlay")
	e.rolled(ctx, framework.AllAccount)
}

// removeDeployments removes Deployments of controllers and waits until their pods are gone. Their rights and patches
// remain.
func (e *Env) removeDeployments(ctx context.Context, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		err := e.Cluster.Clientset().AppsV1().Deployments(framework.SystemNamespace).Delete(ctx, name, metav1.DeleteOptions{})
		Expect(client.IgnoreNotFound(err)).To(Succeed())
	}
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		pods := &corev1.PodList{}
		g.Expect(e.Cluster.Client().List(ctx, pods, client.InNamespace(framework.SystemNamespace))).To(Succeed())
		for _, name := range names {
			g.Expect(pods.Items).NotTo(ContainElement(HaveField("Name", HavePrefix(name+"-"))))
		}
	}).Should(Succeed())
}

// everyControllerLeads waits until the pod of each controller holds a Lease. Without one it does not reconcile. It
// removes the Leases of processes that ended with their node, as a person could: they expire after 270 s.
func (e *Env) everyControllerLeads(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		leases, pods := &coordinationv1.LeaseList{}, e.controllers(ctx)
		g.Expect(e.Cluster.Client().List(ctx, leases, client.InNamespace(framework.SystemNamespace))).To(Succeed())
		for i := range leases.Items {
			l := &leases.Items[i]
			if ptr.Deref(l.Spec.HolderIdentity, "") != "" && !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return leads(pod, *l) }) {
				g.Expect(client.IgnoreNotFound(e.Cluster.Client().Delete(ctx, l))).To(Succeed())
			}
		}
		for _, pod := range pods {
			g.Expect(slices.ContainsFunc(leases.Items, func(l coordinationv1.Lease) bool { return leads(pod, l) })).To(BeTrue(), "%s leads", pod.Name)
		}
	}).WithTimeout(takeover).Should(Succeed())
}

// leads reports whether the pod holds the Lease and has renewed it since its last start. A holder identity is a pod's
// name with a suffix.
func leads(pod corev1.Pod, l coordinationv1.Lease) bool {
	var started metav1.Time
	for _, status := range pod.Status.ContainerStatuses {
		if running := status.State.Running; running != nil {
			started = running.StartedAt
		}
	}
	return strings.HasPrefix(ptr.Deref(l.Spec.HolderIdentity, ""), pod.Name+"_") && ptr.Deref(l.Spec.RenewTime, metav1.MicroTime{}).After(started.Time)
}

// controllers returns the pods of the controllers.
func (e *Env) controllers(ctx context.Context) []corev1.Pod {
	GinkgoHelper()
	pods := &corev1.PodList{}
	Expect(e.Cluster.Client().List(ctx, pods, client.InNamespace(framework.SystemNamespace), client.MatchingLabels{"app.kubernetes.io/part-of": "sno"})).To(Succeed())
	return pods.Items
}

// refusal matches a line of a log about a missing right, which has this text of the API server.
var refusal = regexp.MustCompile(`.* is forbidden: User .*`)

// refusals returns such lines of the logs of the controllers.
func (e *Env) refusals(ctx context.Context) (lines []string) {
	GinkgoHelper()
	for _, pod := range e.controllers(ctx) {
		log := suite.Must(e.Cluster.Clientset().CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx))
		Expect(log).NotTo(BeEmpty(), "the log of %s", pod.Name)
		lines = append(lines, refusal.FindAllString(string(log), 1)...)
	}
	return lines
}

// state is what an outage must not change.
type state struct {
	// Pods are the restarts of each pod's containers, by UID.
	Pods map[string]int32
	// Leases are the holders, and how often they have changed.
	Leases map[string]string
}

func (e *Env) state(ctx context.Context) state {
	GinkgoHelper()
	now, leases := state{Pods: map[string]int32{}, Leases: map[string]string{}}, &coordinationv1.LeaseList{}
	Expect(e.Cluster.Client().List(ctx, leases, client.InNamespace(framework.SystemNamespace))).To(Succeed())
	for _, pod := range e.controllers(ctx) {
		for _, status := range pod.Status.ContainerStatuses {
			now.Pods[pod.Name+" "+string(pod.UID)] += status.RestartCount
		}
	}
	for i := range leases.Items {
		spec := leases.Items[i].Spec
		now.Leases[leases.Items[i].Name] = fmt.Sprintf("%s after %d transitions", ptr.Deref(spec.HolderIdentity, ""), ptr.Deref(spec.LeaseTransitions, 0))
	}
	return now
}

func lease(name, by string, at time.Time) coordinationv1.Lease {
	return coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &by, RenewTime: ptr.To(metav1.NewMicroTime(at))},
	}
}

func TestLeads(t *testing.T) {
	start := time.Unix(100, 0)
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(start)}}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a-1"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: running}}}}
	for name, test := range map[string]struct {
		lease coordinationv1.Lease
		want  bool
	}{
		"held":                       {lease("a", "a-1_id", start.Add(time.Second)), true},
		"never held":                 {coordinationv1.Lease{}, false},
		"released":                   {lease("a", "", start.Add(time.Second)), false},
		"held by another":            {lease("a", "a-12_id", start.Add(time.Second)), false},
		"held before the last start": {lease("a", "a-1_former", start.Add(-time.Second)), false},
	} {
		if got := leads(pod, test.lease); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
