// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/fleet/plan"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/scenario"
)

// kubelet is the scheduler and the kubelet of a spoke, which has neither: it runs the program of each pod of ours with the
// arguments and the account of the pod, and reports what became of it. A pod waits for those that its anti-affinity
// names. A router is ready at once.
type kubelet struct {
	spoke *spoke
	// broken is the ending of images that do not start.
	broken  atomic.Pointer[string]
	mu      sync.Mutex // of running
	running map[types.UID]*embedded.Component
	all     map[string]programs.Program
}

func startKubelet(ctx context.Context, s *spoke) *kubelet {
	k := &kubelet{spoke: s, running: map[types.UID]*embedded.Component{}, all: map[string]programs.Program{}}
	for _, p := range []programs.Program{framework.Ingress.Controller(), programs.KubectlSNO} {
		k.all[p.Name] = p
	}
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(end)
	go func() {
		defer GinkgoRecover()
		_ = wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
			if err := k.sync(ctx); err != nil && ctx.Err() == nil {
				GinkgoWriter.Printf("The kubelet of %s: %v\n", s.name, err)
			}
			return false, nil
		})
	}()
	return k
}

const poll = 200 * time.Millisecond

func (k *kubelet) pods() kubernetes.Interface { return k.spoke.Cluster.Clientset() }

func (k *kubelet) sync(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	list, err := k.pods().CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	present := map[types.UID]bool{}
	for _, p := range list.Items {
		present[p.UID] = true
	}
	for uid, process := range k.running {
		if !present[uid] {
			delete(k.running, uid)
			if err := process.Terminate(ctx); err != nil {
				return err
			}
		}
	}
	for _, p := range list.Items {
		process, runs := k.running[p.UID]
		switch {
		case p.Namespace == scenario.RouterNamespace && p.Status.Phase != corev1.PodRunning:
			err = k.report(ctx, p, corev1.PodRunning)
		case p.Namespace != framework.SystemNamespace && p.Namespace != plan.Name:
		case runs && p.Spec.RestartPolicy == corev1.RestartPolicyNever && p.Status.Phase == corev1.PodRunning && ended(process):
			err = k.report(ctx, p, map[bool]corev1.PodPhase{true: corev1.PodSucceeded, false: corev1.PodFailed}[process.ExitCode() == 0])
		case !runs && p.Status.Phase == corev1.PodPending && k.mayStart(p, list.Items):
			err = k.start(ctx, p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pids returns the processes of the pods that run.
func (k *kubelet) pids() (all []int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, process := range k.running {
		all = append(all, process.PID())
	}
	slices.Sort(all)
	return all
}

// termination is the file for the termination message of a pod.
func (k *kubelet) termination(p corev1.Pod) string {
	return filepath.Join(k.spoke.Cluster.Dir(), string(p.UID))
}

func ended(process *embedded.Component) bool {
	select {
	case <-process.Exited():
		return true
	default:
		return false
	}
}

func (k *kubelet) mayStart(p corev1.Pod, all []corev1.Pod) bool {
	if broken := k.broken.Load(); broken != nil && strings.HasSuffix(p.Spec.Containers[0].Image, *broken) {
		return false
	}
	if p.Spec.Affinity == nil || p.Spec.Affinity.PodAntiAffinity == nil {
		return true
	}
	for _, term := range p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		selector := labels.SelectorFromSet(term.LabelSelector.MatchLabels)
		if slices.ContainsFunc(all, func(other corev1.Pod) bool { return selector.Matches(labels.Set(other.Labels)) }) {
			return false
		}
	}
	return true
}

func (k *kubelet) start(ctx context.Context, p corev1.Pod) error {
	container := p.Spec.Containers[0]
	name, _, _ := strings.Cut(path.Base(container.Image), ":")
	binary, err := programs.Build(ctx, k.all[name], GinkgoWriter)
	if err != nil {
		return err
	}
	kubeconfig, err := k.spoke.Cluster.KubeconfigForServiceAccount(ctx, p.Namespace, p.Spec.ServiceAccountName)
	if err != nil {
		return err
	}
	args := append(slices.Clone(container.Args), "--kubeconfig="+kubeconfig)
	if i := slices.Index(args, container.TerminationMessagePath); i >= 0 {
		args[i] = k.termination(p)
	}
	process := embedded.Process{Name: p.Name, Path: binary, Args: args}
	if p.Spec.RestartPolicy != corev1.RestartPolicyNever {
		process.Ended = framework.StartAgain(ctx)
		process.Args = append(args, "--leader-elect-resource-namespace="+p.Namespace, "--metrics-bind-address=0", "--health-probe-bind-address=0")
	}
	if k.running[p.UID], err = k.spoke.Cluster.RunProcess(ctx, process); err != nil {
		return err
	}
	return k.report(ctx, p, corev1.PodRunning)
}

func (k *kubelet) report(ctx context.Context, p corev1.Pod, phase corev1.PodPhase) error {
	ready := corev1.ConditionFalse
	if phase == corev1.PodRunning {
		ready = corev1.ConditionTrue
	}
	p.Status.Phase = phase
	if process := k.running[p.UID]; phase != corev1.PodRunning {
		message, _ := os.ReadFile(k.termination(p)) // not every program writes one
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: p.Spec.Containers[0].Name, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(process.ExitCode()), Message: string(message)}, //nolint:gosec // an exit code is small
		}}}
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.Now()}}
	_, err := k.pods().CoreV1().Pods(p.Namespace).UpdateStatus(ctx, &p, metav1.UpdateOptions{})
	return err
}
