// SPDX-License-Identifier: Apache-2.0

package embeddedtarget

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionreviewv1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/scenario"
)

const (
	// copies is the prefix of the namespaces of copies, and copyLabel the label on all objects of a run.
	copies    = "sno-conformance-"
	copyLabel = "sno.solonode.github.io/conformance"
)

// payloadNamespaces returns the privileged namespaces, as a release labels them on OpenShift.
func payloadNamespaces() []string {
	return []string{
		scenario.OperatorNamespace, scenario.RouterNamespace, scenario.EtcdNamespace, scenario.ControlPlaneNamespace, scenario.ConsoleNamespace,
		scenario.OAuthServerNamespace, scenario.OAuthAPIServerNamespace, framework.StockApproverNamespace, metav1.NamespaceSystem,
	}
}

// restricted returns the configuration of an API server that enforces the restricted pod security by default.
func restricted(t *testing.T) string {
	t.Helper()
	levels := map[string]any{}
	for _, mode := range []string{"enforce", "audit", "warn"} {
		levels[mode], levels[mode+"-version"] = "restricted", "latest"
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": []any{map[string]any{
			"name": "PodSecurity", "configuration": map[string]any{
				"apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration", "defaults": levels,
				"exemptions": map[string]any{"namespaces": payloadNamespaces()},
			},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "admission.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestUnderPolicies runs the scheduled tier on a cluster that restricts ordinary namespaces: the same checks pass. A
// policy that the suite cannot satisfy makes checks inconclusive, with the policy's name, and none fails.
func TestUnderPolicies(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a cluster; make proof runs it")
	}
	t.Parallel()
	o := options("none-sno-day1-worker", SNO)
	o.Times = cluster.SimulatedTimes()
	o.APIServer = []string{"--admission-control-config-file=" + restricted(t)}
	s, err := start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	u := &up{s, t, t.Context()}
	privileged := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "x"}, Spec: corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{Name: "x", Image: "x"}}}}
	if err := u.Cluster.Client().Create(u.ctx, privileged, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "PodSecurity") {
		t.Fatalf("the policy is not enforced: %v", err)
	}
	go u.limitNamespaces()
	u.refuse("bare-namespaces", "namespaces", "a namespace must set its pod security and its node selector",
		fmt.Sprintf(`!object.metadata.?generateName.orValue("").startsWith(%q) || (`+
			`object.metadata.?labels["pod-security.kubernetes.io/enforce"].orValue("") == "restricted" && object.metadata.?annotations["openshift.io/node-selector"].orValue("x") == "")`, copies),
		u.making(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: copies}}))

	target := s.target(o)
	target.Stop = nil
	results := once(t, target)
	done := 0
	for id, result := range results {
		if result.Tier != string(catalogue.Scheduled) || result.Status == report.NotApplicable {
			continue
		}
		done++
		if result.Status != report.Passed {
			t.Errorf("%s is %s: %s %+v %+v", id, result.Status, result.Reason, result.Evidence, result.Controls)
		}
	}
	if done < 9 {
		t.Errorf("%d checks of the scheduled tier were done", done)
	}

	// hindered repeats all checks and counts those that name the policy. Checks that the policy does not concern pass as
	// before.
	hindered := func(policy string) int {
		n := 0
		for id, result := range once(t, target) {
			switch {
			case result.Status == report.Inconclusive && strings.Contains(result.Reason, policy):
				n++
			case result.Status == report.Failed || result.Status == report.Inconclusive:
				t.Errorf("%s is %s and does not name policy %s: %s %+v", id, result.Status, policy, result.Reason, result.Evidence)
			}
		}
		return n
	}
	u.refuse("no-evictions", "pods/eviction", "nothing is evicted here", `request.namespace == ""`, func() error {
		pods, err := u.Cluster.Clientset().CoreV1().Pods(scenario.RouterNamespace).List(u.ctx, metav1.ListOptions{Limit: 1})
		if err != nil || len(pods.Items) == 0 {
			return err
		}
		return u.Cluster.Client().SubResource("eviction").Create(u.ctx, &pods.Items[0], &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}})
	})
	if n := hindered("no-evictions"); n < 3 {
		t.Errorf("%d checks name the policy that denies evictions", n)
	}
	// All objects of a run need the label.
	u.refuse("unknown-labels", "pods", "label sno.solonode.github.io/conformance is unknown", fmt.Sprintf(`!(%q in object.metadata.?labels.orValue({}))`, copyLabel),
		u.making(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: scenario.RouterNamespace, GenerateName: "x-", Labels: map[string]string{copyLabel: "x"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x"}}},
		}))
	if n := hindered("unknown-labels"); n < 6 {
		t.Errorf("%d checks name the policy that denies pods of copies", n)
	}
	// A webhook may return any error, here a bad request.
	labels := map[string]string{copyLabel: "x"}
	labelled := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: scenario.RouterNamespace, GenerateName: "x-", Labels: labels},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x"}}},
		}},
	}
	u.refuseByWebhook("labels.example.com", copyLabel, u.making(labelled))
	if n := hindered("labels.example.com"); n < 6 {
		t.Errorf("%d checks name the webhook that denies copies", n)
	}
	list, err := u.Cluster.Clientset().CoreV1().Namespaces().List(u.ctx, metav1.ListOptions{LabelSelector: copyLabel})
	u.must(err)
	if len(list.Items) > 0 {
		t.Errorf("%d namespaces are left", len(list.Items))
	}
	outage := u.result(target, "SNO-TOP-011", func() {})
	if outage.Status != report.Passed || slices.ContainsFunc(outage.Evidence, func(e report.Evidence) bool { return e.Object == "A new Deployment" }) {
		t.Errorf("the outage under policies is %s: %s %+v", outage.Status, outage.Reason, outage.Evidence)
	}
}

// limitNamespaces creates a quota in every namespace of copies, and default limits that exceed every node, as a cluster
// may do for new namespaces.
func (u *up) limitNamespaces() {
	kube := u.Cluster.Clientset()
	watching, err := kube.CoreV1().Namespaces().Watch(u.ctx, metav1.ListOptions{LabelSelector: copyLabel})
	if err != nil {
		return // the test ends
	}
	few := corev1.ResourceList{
		corev1.ResourceRequestsCPU: resource.MustParse("1"), corev1.ResourceRequestsMemory: resource.MustParse("1Gi"),
		corev1.ResourceLimitsCPU: resource.MustParse("2"), corev1.ResourceLimitsMemory: resource.MustParse("2Gi"), corev1.ResourcePods: resource.MustParse("20"),
	}
	huge := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500"), corev1.ResourceMemory: resource.MustParse("9000Gi")}
	for event := range watching.ResultChan() {
		namespace, ok := event.Object.(*corev1.Namespace)
		if !ok || namespace.DeletionTimestamp != nil {
			continue
		}
		_, _ = kube.CoreV1().ResourceQuotas(namespace.Name).Create(u.ctx, &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: corev1.ResourceQuotaSpec{Hard: few},
		}, metav1.CreateOptions{})
		_, _ = kube.CoreV1().LimitRanges(namespace.Name).Create(u.ctx, &corev1.LimitRange{
			ObjectMeta: metav1.ObjectMeta{Name: "default"},
			Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Default: huge, DefaultRequest: huge}}},
		}, metav1.CreateOptions{})
	}
}

// refuse creates a policy, and returns when the API server refuses the attempt by it.
func (u *up) refuse(name, resource, message, expression string, attempt func() error) {
	u.t.Helper()
	kube := u.Cluster.Client()
	u.must(kube.Create(u.ctx, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}},
			}}}},
			Validations: []admissionv1.Validation{{Expression: expression, Message: message}},
		},
	}))
	u.must(kube.Create(u.ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}))
	u.until("policy "+name+" is in force", func() (bool, error) {
		err := attempt()
		return err != nil && strings.Contains(err.Error(), name), nil
	})
}

// refuseByWebhook creates a webhook for Deployments that refuses one label, and returns when it refuses the attempt.
func (u *up) refuseByWebhook(name, unknown string, attempt func() error) {
	u.t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var review struct {
			Request struct {
				UID    types.UID                    `json:"uid"`
				Object metav1.PartialObjectMetadata `json:"object"`
			} `json:"request"`
		}
		if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		response := &admissionreviewv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		if _, has := review.Request.Object.Labels[unknown]; has {
			response.Allowed, response.Result = false, &metav1.Status{Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Message: "label " + unknown + " is unknown"}
		}
		result := &admissionreviewv1.AdmissionReview{Response: response}
		result.SetGroupVersionKind(admissionreviewv1.SchemeGroupVersion.WithKind("AdmissionReview"))
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(result) // without a response the API server refuses the request
	}))
	u.t.Cleanup(server.Close)
	none, address := admissionv1.SideEffectClassNone, server.URL
	u.must(u.Cluster.Client().Create(u.ctx, &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionv1.ValidatingWebhook{{
			Name: name, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionv1.WebhookClientConfig{URL: &address, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{appsv1.GroupName}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
			}},
		}},
	}))
	u.until("webhook "+name+" refuses", func() (bool, error) {
		err := attempt()
		return err != nil && strings.Contains(err.Error(), name), nil
	})
}

// making returns a dry run that creates an object.
func (u *up) making(object client.Object) func() error {
	return func() error {
		fresh, _ := object.DeepCopyObject().(client.Object)
		return u.Cluster.Client().Create(u.ctx, fresh, client.DryRunAll)
	}
}

// TestImageThatCannotBePulled: checks that need copies of Deployments are inconclusive, with the reason.
func TestImageThatCannotBePulled(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a cluster; make proof runs it")
	}
	t.Parallel()
	o := options("none-sno", SNO)
	o.Times = cluster.SimulatedTimes()
	o.Times.Ready = 8 * time.Second // never reached
	s, err := start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	u := &up{s, t, t.Context()}
	u.must(u.Cluster.Component(embedded.Kubelets).Kill())
	ctx, cancel := context.WithCancel(u.ctx)
	defer cancel()
	go pullNothing(ctx, u.Cluster.Clientset())
	target := s.target(o)
	target.Image, target.Stop = "registry.invalid/nothing:1", nil
	hindered := 0
	for id, result := range once(t, target) {
		if result.Status == report.Failed {
			t.Errorf("%s failed: %s %+v", id, result.Reason, result.Evidence)
		}
		if result.Status == report.Inconclusive {
			hindered++
			for _, part := range []string{"registry.invalid/nothing:1", "cannot be pulled", "--image"} {
				if !strings.Contains(result.Reason, part) {
					t.Errorf("%s: %q is missing in: %s", id, part, result.Reason)
				}
			}
		}
	}
	if hindered < 6 {
		t.Errorf("%d checks are inconclusive, want all that copy Deployments", hindered)
	}
}

// pullNothing acts as a kubelet for pods whose image cannot be pulled, and for deleted ones.
func pullNothing(ctx context.Context, kube kubernetes.Interface) {
	watching, err := kube.CoreV1().Pods(metav1.NamespaceAll).Watch(ctx, metav1.ListOptions{LabelSelector: copyLabel})
	if err != nil {
		return
	}
	for event := range watching.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		switch {
		case !ok || pod.Spec.NodeName == "":
		case pod.DeletionTimestamp != nil:
			err = kube.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		case len(pod.Status.ContainerStatuses) == 0:
			container := &pod.Spec.Containers[0]
			status, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.ContainerStatus{
				Name: container.Name, Image: container.Image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
			})
			text, _ := yaml.Marshal(map[string]any{"status": map[string]any{"phase": "Pending", "containerStatuses": []any{status}}})
			text, _ = yaml.YAMLToJSON(text)
			_, err = kube.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, text, metav1.PatchOptions{}, "status")
		}
		if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			return // the test fails without a reason
		}
	}
}
