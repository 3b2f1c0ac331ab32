// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/fleet/configuration"
	"github.com/solonode/sno/fleet/executor"
	"github.com/solonode/sno/fleet/manifests"
)

// Name is the name of the ManifestWork, and on the spoke of the Namespace, the account and the Pod. RightsName is that
// of the ManifestWork with the rights of the executor.
const (
	Name       = "sno-plan"
	RightsName = Name + "-rights"
)

const (
	terminationLog = "/dev/termination-log"
	deadline       = 180 // seconds that the Pod may run
)

// Works returns the ManifestWork that plans the modules of a configuration on a spoke, and before it the one that gives
// the account which is its executor the rights to apply it. The deletion of both removes everything there. The Pod has,
// of the controllers' roles, what only reads.
func Works(cluster string, config configuration.Configuration, account workv1.ManifestWorkSubjectServiceAccount) (rights, plan *workv1.ManifestWork, err error) {
	objects := []runtime.Object{
		&corev1.Namespace{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{
				Name: Name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
				Annotations: map[string]string{"openshift.io/node-selector": ""}, // that of the cluster may leave out the control plane
			},
		},
		&corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: inNamespace()},
	}
	for _, module := range config.Modules {
		text, err := manifests.Render("", false, module)
		if err != nil {
			return nil, nil, err
		}
		its, err := readers(text)
		if err != nil {
			return nil, nil, fmt.Errorf("roles of module %s: %w", module, err)
		}
		objects = append(objects, its...)
	}
	objects = append(objects, pod(config))
	granted, err := executor.Grant(Name+"-executor", account, objects)
	if err != nil {
		return nil, nil, err
	}
	rights, plan = newWork(cluster, RightsName, granted), newWork(cluster, Name, objects)
	plan.Spec.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
		Type: workv1.ExecutorSubjectTypeServiceAccount, ServiceAccount: &account,
	}}
	plan.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{Resource: "pods", Namespace: Name, Name: Name},
		// The API server adds fields to a Pod that may not be changed.
		UpdateStrategy:     &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly},
		FeedbackScrapeType: workv1.FeedbackWatchType,
		FeedbackRules: []workv1.FeedbackRule{{Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{
			{Name: valueMessage, Path: ".status.containerStatuses[0].state.terminated.message"},
			{Name: valueExitCode, Path: ".status.containerStatuses[0].state.terminated.exitCode"},
			{Name: valueWaiting, Path: ".status.containerStatuses[0].state.waiting.reason"},
			{Name: valueUnscheduled, Path: `.status.conditions[?(@.type=="PodScheduled")].message`},
			{Name: valuePhase, Path: ".status.phase"}, {Name: valueReason, Path: ".status.reason"},
		}}},
	}}
	return rights, plan, nil
}

func newWork(cluster, name string, objects []runtime.Object) *workv1.ManifestWork {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
	for _, o := range objects {
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Object: o}})
	}
	return work
}

func inNamespace() metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: Name, Name: Name} }

func pod(config configuration.Configuration) *corev1.Pod {
	args := []string{"fleet", "report-plan", terminationLog, "--modules=" + strings.Join(config.Modules, ",")}
	for _, module := range config.Modules {
		args = append(args, config.Args(module)...)
	}
	yes, no, seconds := true, false, int64(deadline)
	p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: inNamespace()}
	p.Annotations = map[string]string{"openshift.io/required-scc": "restricted-v2"}
	p.Spec = corev1.PodSpec{
		ServiceAccountName: Name, RestartPolicy: corev1.RestartPolicyNever, ActiveDeadlineSeconds: &seconds,
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{
			Name: "plan", Image: config.Tool, Args: args, TerminationMessagePath: terminationLog,
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
			}},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}
	for _, key := range []string{"node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"} {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
	}
	return p
}

// readers returns the roles of a controller without what they may write, bound to the account of the plan.
func readers(rendered string) ([]runtime.Object, error) {
	var objects []runtime.Object
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(rendered))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		var kind metav1.TypeMeta
		if err == nil {
			err = yaml.Unmarshal(document, &kind)
		}
		var object interface {
			runtime.Object
			metav1.Object
		}
		switch kind.Kind {
		case "ClusterRole":
			object = &rbacv1.ClusterRole{}
		case "Role":
			object = &rbacv1.Role{}
		case "ClusterRoleBinding":
			object = &rbacv1.ClusterRoleBinding{}
		case "RoleBinding":
			object = &rbacv1.RoleBinding{}
		}
		if err == nil && object != nil {
			err = yaml.Unmarshal(document, object)
		}
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			o.Rules = reading(o.Rules)
		case *rbacv1.Role:
			o.Rules = reading(o.Rules)
		case *rbacv1.ClusterRoleBinding:
			o.Subjects, o.RoleRef.Name = subjects(), renamed(o.RoleRef.Name)
		case *rbacv1.RoleBinding:
			o.Subjects, o.RoleRef.Name = subjects(), renamed(o.RoleRef.Name)
		}
		if err != nil {
			return nil, err
		}
		if object != nil {
			object.SetName(renamed(object.GetName()))
			// What a module may do in the namespace of the controllers, the plan does not do.
			if object.GetNamespace() != controllers {
				objects = append(objects, object)
			}
		}
	}
}

func subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Name, Name: Name}}
}

func renamed(name string) string { return Name + "-" + strings.TrimPrefix(name, "sno-") }

func reading(rules []rbacv1.PolicyRule) (reads []rbacv1.PolicyRule) {
	for _, rule := range rules {
		rule.Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool { return !slices.Contains([]string{"get", "list", "watch"}, verb) })
		if len(rule.Verbs) > 0 {
			reads = append(reads, rule)
		}
	}
	return reads
}
