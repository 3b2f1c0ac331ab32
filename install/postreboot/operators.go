// SPDX-License-Identifier: Apache-2.0

package postreboot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/rotate"

	"github.com/solonode/sno/install/node"
)

// ErrNotReady is in the error of a control plane that still needs files of the bootstrap phase.
var ErrNotReady = errors.New("not ready")

type staticPod struct {
	operator, resource string
	namespace, name    string
}

var staticPods = []staticPod{
	{"etcd", "etcds", "openshift-etcd", "etcd"},
	{"kube-apiserver", "kubeapiservers", "openshift-kube-apiserver", "kube-apiserver"},
	{"kube-controller-manager", "kubecontrollermanagers", "openshift-kube-controller-manager", "kube-controller-manager"},
	{"kube-scheduler", "kubeschedulers", "openshift-kube-scheduler", "openshift-kube-scheduler"},
}

type controlPlane struct {
	client   kubernetes.Interface
	settings *node.Settings
}

// ready returns an error with what each static pod waits for. In profile kubernetes there are only the pods.
func (c controlPlane) ready(ctx context.Context) error {
	var all []string
	for _, s := range staticPods {
		var revision, waits string
		if c.settings.Profile != string(inputs.Kubernetes) {
			revision, waits = c.revision(ctx, s)
		}
		if waits == "" {
			waits = c.pod(ctx, s, revision)
		}
		if waits != "" {
			all = append(all, s.operator+": "+waits)
		}
	}
	if len(all) > 0 {
		return fmt.Errorf("%w: %s", ErrNotReady, strings.Join(all, "; "))
	}
	return nil
}

// admittedPods has the static pods that the kubelet has admitted since the machine has started.
const admittedPods = node.StatusDir + "/static-pods"

// restartKubelet restarts the kubelet after a static pod was replaced by one with another name, as an operator replaces
// that of a release's bootstrap phase. The kubelet denies the new pod while the old one has its ports, and does not try
// again (U-INS-13).
func (o Options) restartKubelet(ctx context.Context) error {
	now, err := o.podNames()
	if err != nil {
		return err
	}
	before, err := os.ReadFile(o.path(admittedPods))
	switch {
	case errors.Is(err, fs.ErrNotExist): // no operator runs yet, or the machine has started with these
	case err != nil:
		return err //nolint:wrapcheck // it names the file
	case string(before) == now:
		return nil
	default:
		if err := o.Systemctl(ctx, "restart", "kubelet.service"); err != nil {
			return fmt.Errorf("systemctl restart kubelet.service: %w", err)
		}
	}
	_, err = rotate.WriteChanged(o.Root, []files.File{{Path: admittedPods, Mode: 0o600, Content: []byte(now)}})
	return err //nolint:wrapcheck // it names the file
}

// podNames returns the names in the manifests of the static pods.
func (o Options) podNames() (string, error) {
	var names strings.Builder
	for _, file := range node.StaticPods {
		text, err := os.ReadFile(o.path(node.ManifestDir + "/" + file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var pod metav1.PartialObjectMetadata
		if err == nil {
			err = yaml.Unmarshal(text, &pod)
		}
		if err != nil {
			return "", fmt.Errorf("read the static pod %s: %w", file, err)
		}
		names.WriteString(pod.Namespace + "/" + pod.Name + "\n")
	}
	return names.String(), nil
}

// revision returns the revision of a stable operator, or what it waits for. It may be the revision of the bootstrap
// phase, which an operator without changes keeps (R-BIP-16).
func (c controlPlane) revision(ctx context.Context, s staticPod) (revision, waits string) {
	var cluster configv1.ClusterOperator
	var operator struct {
		Status operatorv1.StaticPodOperatorStatus `json:"status"`
	}
	err := c.read(ctx, "/apis/config.openshift.io/v1/clusteroperators/"+s.operator, &cluster)
	if err == nil {
		err = c.read(ctx, "/apis/operator.openshift.io/v1/"+s.resource+"/cluster", &operator)
	}
	if err != nil {
		return "", err.Error()
	}
	conditions := map[configv1.ClusterStatusConditionType]configv1.ClusterOperatorStatusCondition{}
	for _, condition := range cluster.Status.Conditions {
		conditions[condition.Type] = condition
	}
	var current int32
	for _, n := range operator.Status.NodeStatuses {
		if n.NodeName == c.settings.Name {
			current = n.CurrentRevision
		}
	}
	latest := operator.Status.LatestAvailableRevision
	switch {
	case conditions[configv1.OperatorAvailable].Status != configv1.ConditionTrue:
		return "", "it is not available: " + conditions[configv1.OperatorAvailable].Message
	case conditions[configv1.OperatorProgressing].Status != configv1.ConditionFalse:
		return "", "it is progressing: " + conditions[configv1.OperatorProgressing].Message
	case conditions[configv1.OperatorDegraded].Status == configv1.ConditionTrue:
		return "", "it is degraded: " + conditions[configv1.OperatorDegraded].Message
	case latest == 0 || current != latest:
		return "", fmt.Sprintf("the node has revision %d, the latest is %d", current, latest)
	}
	return strconv.Itoa(int(latest)), ""
}

// pod returns what the pod on this node waits for. It must have the revision, unless that is "".
func (c controlPlane) pod(ctx context.Context, s staticPod, revision string) (waits string) {
	pod, err := c.client.CoreV1().Pods(s.namespace).Get(ctx, s.name+"-"+c.settings.Name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	if got := pod.Labels["revision"]; revision != "" && got != revision {
		return fmt.Sprintf("the pod has revision %q, not %s", got, revision)
	}
	if !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}) {
		return "the pod is not Ready"
	}
	return ""
}

func (c controlPlane) read(ctx context.Context, path string, into any) error {
	text, err := c.client.Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}
