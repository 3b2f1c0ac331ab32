package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	kubectl "k8s.io/kubectl/pkg/drain"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/ownership"
)

const (
	// cordonManager is the field manager of our cordons: what the client that makes them calls itself.
	cordonManager = "sno-machineconfig"
	// podsAtOnce is how many pods are listed in one request.
	podsAtOnce = 500
)

// stockManagers are the field managers under which a machine-config operator answers requests. One that is gone answers no more.
var stockManagers = []string{"machine-config-controller", "machine-config-operator"}

// errOwned is returned when somebody else owns the annotation with which a request is answered.
var errOwned = errors.New("owned by another field manager")

// nodes does to nodes what they ask for. Each is read from the API server right before, since what asked may be gone.
type nodes struct {
	kube   kubernetes.Interface
	events events.EventRecorder
	// timeout is how long one try of a drain takes at most.
	timeout time.Duration
	// force answers also where somebody else owns the annotation.
	force    bool
	recorder apply.Recorder
	tries    tries
}

// asking reads the node of a job; nil when it is gone, or asks for something else by now. An errOwned means that it cannot be answered.
func (n *nodes) asking(ctx context.Context, j job) (*corev1.Node, error) {
	node, err := n.kube.CoreV1().Nodes().Get(ctx, j.node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading node %s: %w", j.node, err)
	}
	request, err := machineconfig.Asked(node.Annotations)
	if err != nil || request == nil || *request != j.request || node.UID != j.uid {
		return nil, nil //nolint:nilerr // what cannot be understood is reported by the look that finds it
	}
	if err := n.answerable(node); err != nil {
		return nil, err
	}
	return node, nil
}

// acknowledge answers a request for a drain that is not needed, without a drain. A cordon of ours, which was made before the drain
// was no longer needed, is taken off: there is nowhere else to go.
func (n *nodes) acknowledge(ctx context.Context, j job, why string) error {
	node, err := n.asking(ctx, j)
	if node == nil || err != nil {
		return err
	}
	ours, err := isOurCordon(node)
	if err != nil {
		return err
	}
	if ours {
		if err := n.cordon(ctx, node, false); err != nil {
			return err
		}
	}
	if err := n.answer(ctx, j); err != nil {
		return err
	}
	n.tries.ended(resultNotNeeded)
	n.tell(ctx, node, corev1.EventTypeNormal, "DrainNotNeeded", "Drain", "Nothing is cordoned or evicted. "+why)
	return nil
}

// uncordon lets the node take pods again, and answers.
func (n *nodes) uncordon(ctx context.Context, j job) error {
	node, err := n.asking(ctx, j)
	if node == nil || err != nil {
		return err
	}
	if err := n.cordon(ctx, node, false); err != nil {
		return err
	}
	if err := n.answer(ctx, j); err != nil {
		return err
	}
	n.tell(ctx, node, corev1.EventTypeNormal, "Uncordoned", "Uncordon", "The node takes pods again")
	return nil
}

func (n *nodes) cordon(ctx context.Context, node *corev1.Node, closed bool) error {
	if err := kubectl.RunCordonOrUncordon(n.helper(ctx, logr.Discard()), node, closed); err != nil {
		return fmt.Errorf("changing the cordon of node %s: %w", node.Name, err)
	}
	return nil
}

// answerable is an errOwned when the annotation for the answer, which never is taken from a person, is somebody else's. It is asked
// before anything is done: what cannot be answered would be done for nothing.
func (n *nodes) answerable(node *corev1.Node) error {
	if _, answered := node.Annotations[machineconfig.LastAppliedDrainAnnotation]; !answered || n.force {
		return nil
	}
	path := fieldpath.MakePathOrDie("metadata", "annotations", machineconfig.LastAppliedDrainAnnotation)
	others, err := ownership.OthersAt(node, path, append([]string{machineconfig.FieldOwner}, stockManagers...)...)
	switch {
	case err != nil:
		return fmt.Errorf("who answered node %s: %w", node.Name, err)
	case len(others) > 0:
		n.recorder.RecordApply(machineconfig.Name, apply.Conflicted)
		n.recorder.RecordConflict(machineconfig.Name, others[0])
		return fmt.Errorf("%w: %s of node %s by %q", errOwned, machineconfig.LastAppliedDrainAnnotation, node.Name, others[0])
	}
	return nil
}

// answer says on the node that its request is carried out. What asking has found to be answerable is only a stock controller's.
func (n *nodes) answer(ctx context.Context, j job) error {
	err := n.apply(ctx, j, n.force)
	if conflicts := apply.ConflictsOf(err); len(conflicts) > 0 {
		if slices.ContainsFunc(conflicts, func(c apply.Conflict) bool { return !slices.Contains(stockManagers, c.Manager) }) {
			return fmt.Errorf("%w: %s of node %s by %q", errOwned, machineconfig.LastAppliedDrainAnnotation, j.node, conflicts[0].Manager)
		}
		err = n.apply(ctx, j, true)
	}
	if err != nil {
		n.recorder.RecordApply(machineconfig.Name, apply.Refused)
		return fmt.Errorf("answering node %s: %w", j.node, err)
	}
	n.recorder.RecordApply(machineconfig.Name, apply.Applied)
	logr.FromContextOrDiscard(ctx).Info("Answered", "node", j.node, "request", j.request.String())
	return nil
}

// apply names the UID, so that a node that was made anew under the name is not told of something that was done to another.
func (n *nodes) apply(ctx context.Context, j job, force bool) error {
	intent := corev1ac.Node(j.node).WithUID(j.uid).WithAnnotations(map[string]string{machineconfig.LastAppliedDrainAnnotation: j.request.String()})
	_, err := n.kube.CoreV1().Nodes().Apply(ctx, intent, metav1.ApplyOptions{FieldManager: machineconfig.FieldOwner, Force: force})
	return err
}

// all reads every node of the cluster, whole.
func (n *nodes) all(ctx context.Context) ([]corev1.Node, error) {
	all, err := n.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading every node: %w", err)
	}
	return all.Items, nil
}

func (n *nodes) tell(ctx context.Context, node *corev1.Node, kind, reason, action, note string) {
	n.events.Eventf(node, nil, kind, reason, action, "%s", note)
	logr.FromContextOrDiscard(ctx).V(1).Info("Event", "node", node.Name, "reason", reason, "note", note)
}

// tellGarbled says on the node that its request is not answered.
func (n *nodes) tellGarbled(ctx context.Context, node *corev1.Node, dryRun bool) {
	if !dryRun {
		n.tell(ctx, node, corev1.EventTypeWarning, machineconfig.ReasonInvalid, "Answer", garbledResult.Message)
	}
}

// isOurCordon tells whether the node is cordoned, and by us.
func isOurCordon(node *corev1.Node) (bool, error) {
	if !node.Spec.Unschedulable {
		return false, nil
	}
	managers, err := ownership.Managers(node, ".spec.unschedulable")
	if err != nil {
		return false, fmt.Errorf("who cordoned node %s: %w", node.Name, err)
	}
	return slices.Contains(managers, cordonManager), nil
}
