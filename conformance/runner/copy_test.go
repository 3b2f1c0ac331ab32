// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
)

// The Deployment is in the cache as rolled out, and the pods are as they were: nothing would be evicted, and the check
// would pass.
func TestRolledOutWaitsForPods(t *testing.T) {
	const namespace, revision = "a-copy", "2"
	pod := func(name, revision string, phase corev1.PodPhase) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Status: corev1.PodStatus{Phase: phase}}
		p.Spec.NodeName = "master-0"
		if phase == corev1.PodRunning {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		if revision != "" {
			p.Annotations = map[string]string{revisionAnnotation: revision}
		}
		return p
	}
	leaving := pod("a", revision, corev1.PodRunning)
	leaving.DeletionTimestamp = ptr.To(metav1.Now())
	waiting := pod("b", revision, corev1.PodPending)
	waiting.Spec.NodeName = ""
	done := appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	behind, unobserved := done, done
	behind.AvailableReplicas, unobserved.ObservedGeneration = 0, 1
	for name, test := range map[string]struct {
		status              appsv1.DeploymentStatus
		pods                []*corev1.Pod
		rolledOut, starting bool
	}{
		"the new pod":                   {done, []*corev1.Pod{pod("a", revision, corev1.PodRunning)}, true, true},
		"no pod yet":                    {done, nil, false, false},
		"the new pod not yet running":   {done, []*corev1.Pod{pod("a", revision, corev1.PodPending)}, false, true},
		"still the old pod":             {done, []*corev1.Pod{pod("a", "", corev1.PodRunning)}, false, false},
		"the pod is being deleted":      {done, []*corev1.Pod{leaving}, false, true},
		"both":                          {done, []*corev1.Pod{pod("a", "", corev1.PodRunning), pod("b", revision, corev1.PodRunning)}, false, false},
		"no node for the new pod":       {behind, []*corev1.Pod{pod("a", "", corev1.PodRunning), waiting}, false, false},
		"the status is behind the pods": {behind, []*corev1.Pod{pod("a", revision, corev1.PodRunning)}, false, true},
		"the controller is behind":      {unobserved, []*corev1.Pod{pod("a", "", corev1.PodRunning)}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			copied := &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "router", Generation: 2},
				Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](1), Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{revisionAnnotation: revision}},
				}},
				Status: test.status,
			}
			deployments := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
			pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
			if err := deployments.Add(copied); err != nil {
				t.Fatal(err)
			}
			for _, p := range test.pods {
				if err := pods.Add(p); err != nil {
					t.Fatal(err)
				}
			}
			c := &workloadCopy{
				workloadCopier: &workloadCopier{deployments: appslisters.NewDeploymentLister(deployments), pods: corelisters.NewPodLister(pods)},
				shape:          shape{deployment: copied}, namespace: namespace,
			}
			if got := c.rolledOut(2); got != test.rolledOut {
				t.Errorf("rolled out: %t, want %t", got, test.rolledOut)
			}
			if got := c.starting(); got != test.starting {
				t.Errorf("starting: %t, want %t", got, test.starting)
			}
		})
	}
}

// TestShape: a copy contains what the scheduler uses and nothing that only kubelets use.
func TestShape(t *testing.T) {
	app := map[string]string{"app": "router-default"}
	source := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-ingress", Name: "router-default"}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: app},
	}}
	source.Spec.Template.Labels = app
	source.Spec.Template.Spec = corev1.PodSpec{
		HostNetwork: true, PriorityClassName: "system-cluster-critical", NodeSelector: map[string]string{"node-role.kubernetes.io/master": ""},
		Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		TerminationGracePeriodSeconds: ptr.To[int64](3600), Volumes: []corev1.Volume{{Name: "certificates"}},
		Containers: []corev1.Container{{
			Name: "router", Image: "router", Ports: []corev1.ContainerPort{{ContainerPort: 443}, {ContainerPort: 80}, {ContainerPort: 80, Protocol: corev1.ProtocolUDP}},
			ReadinessProbe: &corev1.Probe{},
		}},
	}
	source.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	budget := func(namespace string, labels map[string]string) policyv1.PodDisruptionBudget {
		return policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "budget"},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
		}
	}
	s := shapeOf(&source, []policyv1.PodDisruptionBudget{budget("openshift-ingress", app), budget("elsewhere", app), budget("openshift-ingress", map[string]string{"app": "other"})}, program{image: "pause", command: []string{"sh"}}, "run")
	if len(s.budgets) != 1 {
		t.Errorf("%d budgets, want the one over it", len(s.budgets))
	}
	pod := s.deployment.Spec.Template.Spec
	const ports = "443-TCP_80-TCP_80-UDP"
	want := corev1.PodSpec{
		PriorityClassName: "system-cluster-critical", NodeSelector: map[string]string{"node-role.kubernetes.io/master": ""}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		TerminationGracePeriodSeconds: ptr.To[int64](0), AutomountServiceAccountToken: ptr.To(false),
		// required by restricted pod security and by quotas
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: "RuntimeDefault"}},
		Containers: []corev1.Container{{
			Name: "copy", Image: "pause", Command: []string{"sh"}, Resources: copyResources(), ImagePullPolicy: corev1.PullIfNotPresent,
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
		}},
		Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{portLabel: ports}}, TopologyKey: corev1.LabelHostname,
		}}}},
	}
	if diff := cmp.Diff(want, pod); diff != "" {
		t.Error(diff)
	}
	if got := s.deployment.Spec.Template.Labels; got[portLabel] != ports || got[cluster.RunLabel] != "run" || got["app"] != "router-default" {
		t.Errorf("labels are %v", got)
	}
	if s.deployment.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType || *s.deployment.Spec.Replicas != 2 {
		t.Errorf("%v with %d replicas", s.deployment.Spec.Strategy, *s.deployment.Spec.Replicas)
	}
	if source.Spec.Template.Labels[cluster.RunLabel] != "" {
		t.Error("the source was changed")
	}
}

// TestProgramOf: the default image runs already, on as many nodes as possible, and keeps running.
func TestProgramOf(t *testing.T) {
	pod := func(name, node, image string, ready corev1.ConditionStatus, command ...string) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-dns", Name: name},
			Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Image: image, Command: command}}},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
		}
	}
	const yes, no = corev1.ConditionTrue, corev1.ConditionFalse
	pulling := pod("pulling", "b", "a/pulled", yes, "/bin/sh", "-c", "x")
	pulling.Status.Phase = corev1.PodPending
	pods := []corev1.Pod{
		pod("router", "a", "a/router", yes, "/usr/bin/router"), pod("router", "b", "a/router", yes, "/usr/bin/router"), pod("none", "a", "a/entry", yes), pod("none", "b", "a/entry", yes),
		pod("one", "a", "a/first", yes, "sh", "-c", "x"), pod("one-more", "a", "a/first", yes, "sh"),
		pod("resolver", "a", "a/tools", yes, "/bin/bash", "-c", "x"), pod("resolver", "b", "a/tools", yes, "/bin/bash", "-c", "x"),
		pod("broken", "a", "a/broken", no, "/bin/sh"), pod("broken", "b", "a/broken", no, "/bin/sh"), pod("broken", "c", "a/broken", no, "/bin/sh"), pulling,
	}
	for range 3 {
		if got := programOf("", pods); got.image != "a/tools" || !slices.Equal(got.command, []string{"/bin/bash", "-c", sleepForever}) || !strings.Contains(got.from, "openshift-dns/resolver") {
			t.Errorf("got %+v", got)
		}
		slices.Reverse(pods)
	}
	if got := programOf("my/own", pods); got.image != "my/own" || got.command != nil {
		t.Errorf("configured: %+v", got)
	}
	if got := programOf("", pods[:0]); got.image != CopyImage || got.command != nil {
		t.Errorf("no pods: %+v", got)
	}
}

func TestImageProblem(t *testing.T) {
	const pull, run = "image some/image cannot be pulled (%s): choose another one with --image", "image some/image does not keep running (%s): choose another one with --image"
	for reason, format := range map[string]string{
		"ErrImagePull": pull, "ImagePullBackOff": pull, "InvalidImageName": pull, "CrashLoopBackOff": run, "CreateContainerError": run,
		"ContainerCreating": "", "PodInitializing": "",
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{Image: "some/image", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}},
		}}}
		if got, want := imageProblem(pod), strings.Replace(format, "%s", reason, 1); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	running := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}}
	if got := imageProblem(running); got != "" {
		t.Errorf("it runs: %q", got)
	}
}

// TestPolicyError: rejections by policies are inconclusive, other errors are not.
func TestPolicyError(t *testing.T) {
	pods := schema.GroupKind{Kind: "Pod"}
	for err, policy := range map[error]bool{
		apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", errors.New("exceeded quota")):   true,
		apierrors.NewBadRequest(`admission webhook "labels.example.com" denied the request: unknown label`): true,
		apierrors.NewInvalid(pods, "x", nil): false,
		&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Code: 422, Message: "ValidatingAdmissionPolicy 'labels' with binding 'labels' denied request: unknown label"}}: true,
		apierrors.NewTimeoutError("slow", 1): false,
	} {
		if got := policyError(err); errors.Is(got, catalogue.ErrInconclusive) != policy || !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
	}
}
