// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func TestPayload(t *testing.T) {
	all := PayloadNamespaces()
	if !slices.IsSorted(all) || len(slices.Compact(slices.Clone(all))) != len(all) {
		t.Errorf("not sorted, or duplicates: %v", all)
	}
	for _, w := range slices.Concat(routers(), consoles(), oauths(), []workload{{namespace: etcdNamespace}, {namespace: approverNamespace}}) {
		if !slices.Contains(all, w.namespace) {
			t.Errorf("%s, which checks need, is missing", w.namespace)
		}
	}
	p, chosen := newPayload(nil), newPayload([]string{"openshift-storage"})
	for namespace, want := range map[string]bool{
		"openshift-ingress": true, "openshift-must-gather-x7k2p": false, "openshift": false, "kube-system": false, "sno-conformance-abc": false,
		"openshift-storage": false, "openshift-gitops": false, "openshift-cnv": false, "openshift-operators": false, "openshift-logging": false,
	} {
		if got := p.has(namespace); got != want {
			t.Errorf("%s: %t, want %t", namespace, got, want)
		}
		if got := chosen.has(namespace); got != (namespace == "openshift-storage") {
			t.Errorf("%s with openshift-storage selected: %t", namespace, got)
		}
	}
	if got := slices.Sorted(maps.Keys(p.others)); !slices.Equal(got, []string{"openshift-cnv", "openshift-gitops", "openshift-logging", "openshift-operators", "openshift-storage"}) {
		t.Errorf("left out: %v", got)
	}
}

// TestTitles: titles about an API server contain its namespace.
func TestTitles(t *testing.T) {
	about := 0
	for _, check := range Catalogue() {
		rest := strings.ReplaceAll(check.Title, "openshift-oauth-apiserver/apiserver", "")
		if rest != check.Title {
			about++
		}
		if strings.Contains(rest, "apiserver") {
			t.Errorf("%s: %q does not name the namespace of the Deployment apiserver", check.ID, check.Title)
		}
	}
	if about != 5 {
		t.Errorf("%d titles are about the OAuth API server, want 5", about)
	}
}

func TestTolerates(t *testing.T) {
	taint := corev1.Taint{Key: masterRole, Effect: corev1.TaintEffectNoSchedule}
	for name, test := range map[string]struct {
		toleration corev1.Toleration
		want       bool
	}{
		"the key":              {corev1.Toleration{Key: masterRole, Operator: corev1.TolerationOpExists}, true},
		"the key and effect":   {corev1.Toleration{Key: masterRole, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}, true},
		"another effect":       {corev1.Toleration{Key: masterRole, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}, false},
		"another key":          {corev1.Toleration{Key: controlPlaneRole, Operator: corev1.TolerationOpExists}, false},
		"everything":           {corev1.Toleration{Operator: corev1.TolerationOpExists}, true},
		"the value of nothing": {corev1.Toleration{Key: masterRole, Operator: corev1.TolerationOpEqual}, true},
		"another value":        {corev1.Toleration{Key: masterRole, Operator: corev1.TolerationOpEqual, Value: "x"}, false},
	} {
		if got := tolerates([]corev1.Toleration{test.toleration}, taint); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

func TestAllowed(t *testing.T) {
	for name, test := range map[string]struct {
		spec    policyv1.PodDisruptionBudgetSpec
		n, want int
	}{
		"one of three":           {policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(1))}, 3, 1},
		"none":                   {policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(0))}, 3, 0},
		"half of three":          {policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromString("50%"))}, 3, 2},
		"two must remain":        {policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(2))}, 3, 1},
		"more than exist":        {policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(5))}, 3, 0},
		"all must remain":        {policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromString("100%"))}, 1, 0},
		"an empty specification": {policyv1.PodDisruptionBudgetSpec{}, 3, 0},
	} {
		if got := allowed(&policyv1.PodDisruptionBudget{Spec: test.spec}, test.n); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
	for members, want := range map[int]int{1: 0, 2: 1, 3: 1, 4: 1, 5: 2, 7: 3} {
		if got, why := allowedDisruptions(guardDeployment, members); got != want || why == "" {
			t.Errorf("of %d members %d may go, want %d: %s", members, got, want, why)
		}
		if got, why := allowedDisruptions(operatorBudget, members); got != 1 || !strings.Contains(why, "etcd operator") {
			t.Errorf("of %d members %d may go by the etcd operator's budget: %s", members, got, why)
		}
	}
}

// TestGuardBudget: the evidence contains the wanted budget, its size, and why.
func TestGuardBudget(t *testing.T) {
	const both = operatorBudget + "," + guardDeployment
	for name, test := range map[string]struct {
		guards, budgets    string
		allowedDisruptions int32
		members            int
		wants              []string
		held               bool
	}{
		"the operator's":                    {guardPrefix, operatorBudget, 1, 3, []string{"only etcd-guard-pdb: the etcd operator", "1: the etcd operator allows one"}, true},
		"the operator's, of five":           {guardPrefix, operatorBudget, 1, 5, []string{"1: the etcd operator allows one unavailable member of any number"}, true},
		"the operator's, of five, two":      {guardPrefix, operatorBudget, 2, 5, []string{"1: the etcd operator"}, false},
		"the Deployment's":                  {guardDeployment + "-", guardDeployment, 1, 3, []string{"only etcd-quorum-guard: the Deployment", "1: leaves a quorum of 3 members"}, true},
		"the Deployment's, of five":         {guardDeployment + "-", guardDeployment, 2, 5, []string{"2: leaves a quorum of 5 members"}, true},
		"the Deployment's, of two":          {guardDeployment + "-", guardDeployment, 1, 2, []string{"1: neither of the two nodes"}, true},
		"the Deployment's, of five, one":    {guardDeployment + "-", guardDeployment, 1, 5, []string{"2: leaves"}, false},
		"both, over the operator's guards":  {guardPrefix, both, 1, 3, []string{"only etcd-guard-pdb"}, false},
		"both, over the Deployment's":       {guardDeployment + "-", both, 1, 3, []string{"only etcd-quorum-guard"}, false},
		"the Deployment's, over operator's": {guardPrefix, guardDeployment, 1, 3, []string{"only etcd-guard-pdb"}, false},
		"none":                              {guardPrefix, "", 1, 3, []string{"only etcd-guard-pdb"}, false},
	} {
		state := &State{}
		for i := range test.members {
			node := fmt.Sprintf("node-%d", i)
			state.Nodes = append(state.Nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{masterRole: ""}}})
			state.Pods = append(state.Pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: etcdNamespace, Name: test.guards + node}})
		}
		for _, budget := range strings.FieldsFunc(test.budgets, func(r rune) bool { return r == ',' }) {
			state.Budgets = append(state.Budgets, policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Namespace: etcdNamespace, Name: budget},
				Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(test.allowedDisruptions))},
			})
		}
		evidence, err := guardBudget(t.Context(), &Input{State: state})
		if err != nil || held(evidence) != test.held {
			t.Errorf("%s: %v %+v", name, err, evidence)
		}
		got := ""
		for _, e := range evidence {
			got += e.Want + "; "
		}
		for _, want := range test.wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s: wants %s, want %q in it", name, got, want)
			}
		}
	}
}

// TestShape: a copy contains what the scheduler uses and nothing that only kubelets use.
func TestShape(t *testing.T) {
	source := newDeployment("openshift-ingress", "router-default", 2)
	source.Spec.Template.Spec = corev1.PodSpec{
		HostNetwork: true, PriorityClassName: "system-cluster-critical", NodeSelector: map[string]string{masterRole: ""},
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
	app := map[string]string{"app": "router-default"}
	s := shapeOf(&source, []policyv1.PodDisruptionBudget{budget("openshift-ingress", app), budget("elsewhere", app), budget("openshift-ingress", map[string]string{"app": "other"})}, program{image: "pause", command: []string{"sh"}}, "run")
	if len(s.budgets) != 1 {
		t.Errorf("%d budgets, want the one over it", len(s.budgets))
	}
	pod := s.deployment.Spec.Template.Spec
	const ports = "443-TCP_80-TCP_80-UDP"
	want := corev1.PodSpec{
		PriorityClassName: "system-cluster-critical", NodeSelector: map[string]string{masterRole: ""}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		TerminationGracePeriodSeconds: ptr.To[int64](0), AutomountServiceAccountToken: ptr.To(false),
		// required by restricted pod security and by quotas
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: "RuntimeDefault"}},
		Containers: []corev1.Container{{
			Name: "copy", Image: "pause", Command: []string{"sh"}, Resources: copyResources(), ImagePullPolicy: corev1.PullIfNotPresent,
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
		}},
		Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{portLabel: ports}}, TopologyKey: hostnameLabel,
		}}}},
	}
	if diff := cmp.Diff(want, pod); diff != "" {
		t.Error(diff)
	}
	if got := s.deployment.Spec.Template.Labels; got[portLabel] != ports || got[runLabel] != "run" || got["app"] != "router-default" {
		t.Errorf("labels are %v", got)
	}
	if s.deployment.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType || *s.deployment.Spec.Replicas != 2 {
		t.Errorf("%v with %d replicas", s.deployment.Spec.Strategy, *s.deployment.Spec.Replicas)
	}
	if source.Spec.Template.Labels[runLabel] != "" {
		t.Error("the source was changed")
	}
}

// TestCopyNamespace: namespaces of copies have no default node selector, and restricted pod security.
func TestCopyNamespace(t *testing.T) {
	namespace := copyNamespace("run")
	if value, there := namespace.Annotations["openshift.io/node-selector"]; !there || value != "" {
		t.Errorf("annotations are %v", namespace.Annotations)
	}
	for label, want := range map[string]string{
		runLabel: "run", "pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/audit": "restricted", "pod-security.kubernetes.io/warn": "restricted",
		"security.openshift.io/scc.podSecurityLabelSync": "false",
	} {
		if got := namespace.Labels[label]; got != want {
			t.Errorf("%s is %q, want %q", label, got, want)
		}
	}
}

func TestDifferences(t *testing.T) {
	before := &State{Nodes: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}}}
	after := before.DeepCopy()
	if left := differences(before, after); len(left) > 0 {
		t.Errorf("no change, but %v", left)
	}
	after.Nodes[0].Spec.Unschedulable = true
	after.Nodes[1].Name = "c"
	got := strings.Join(differences(before, after), "; ")
	if want := "Node a: was unschedulable false, is unschedulable true; Node b: deleted; Node c: created"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// The annotation of a rollout and other template annotations are compared; for operators' own ones, whose values
	// change, only the keys.
	template := func(annotations map[string]string) *State {
		d := newDeployment(routerNamespace, routerName, 1)
		d.Spec.Template.Annotations = annotations
		return &State{Deployments: []appsv1.Deployment{d}}
	}
	for name, test := range map[string]struct {
		before, after map[string]string
		left          int
	}{
		"a rollout's":              {nil, map[string]string{rolloutAnnotation: "now"}, 1},
		"a later rollout's":        {map[string]string{rolloutAnnotation: "then"}, map[string]string{rolloutAnnotation: "now"}, 1},
		"reverted":                 {map[string]string{rolloutAnnotation: "then"}, map[string]string{rolloutAnnotation: "then"}, 0},
		"a person's, removed":      {map[string]string{"example.com/reviewed": "yes"}, nil, 1},
		"another one":              {nil, map[string]string{"example.com/reviewed": "yes"}, 1},
		"an operator's, changed":   {map[string]string{"operator.openshift.io/rvs-hash": "1"}, map[string]string{"operator.openshift.io/rvs-hash": "2"}, 0},
		"an operator's, unchanged": {map[string]string{"operator.openshift.io/rvs-hash": "1"}, map[string]string{"operator.openshift.io/rvs-hash": "1"}, 0},
	} {
		if left := differences(template(test.before), template(test.after)); len(left) != test.left {
			t.Errorf("annotation %s: %v, want %d", name, left, test.left)
		}
	}
}

func TestRelease(t *testing.T) {
	for release, want := range map[string]bool{"4.7.13": true, "4.8.0": false, "4.21.3": false, "4.8.0-rc.1": false, "": false, "newest": false} {
		if got := beforeTopologies(release); got != want {
			t.Errorf("%q: %t, want %t", release, got, want)
		}
	}
	for text, want := range map[string]bool{`{"a":true}`: true, "a: true": true, "b: true": false, "": false, "- a": false, "{": false} {
		if got := containsKey(text, "a"); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}
