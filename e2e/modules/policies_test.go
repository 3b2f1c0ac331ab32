// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/e2e/embeddedtarget"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/suite"
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
func restricted() string {
	GinkgoHelper()
	text := fmt.Appendf(nil, `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults: {enforce: restricted, audit: restricted, warn: restricted}
    exemptions: {namespaces: [%s]}
`, strings.Join(payloadNamespaces(), ", "))
	file := filepath.Join(GinkgoT().TempDir(), "admission.yaml")
	Expect(os.WriteFile(file, text, 0o600)).To(Succeed())
	return file
}

var _ = Describe("The suite on a cluster that refuses requests", Label(suite.Long), func() {
	It("satisfies restrictions of ordinary namespaces, and names a policy that it cannot satisfy", func(ctx SpecContext) {
		s := startSystem(ctx, embeddedtarget.Options{
			Scenario: "none-sno-day1-worker", Variant: embeddedtarget.SNO, APIServer: []string{"--admission-control-config-file=" + restricted()},
		})
		container := []corev1.Container{{Name: "x", Image: "x"}}
		privileged := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "x"}, Spec: corev1.PodSpec{HostNetwork: true, Containers: container}}
		Expect(s.kube.Create(ctx, privileged, client.DryRunAll)).To(MatchError(ContainSubstring("PodSecurity")), "the policy is enforced")
		go s.limitNamespaces()
		s.refuse("bare-namespaces", "namespaces", "a namespace must set its pod security and its node selector",
			fmt.Sprintf(`!object.metadata.?generateName.orValue("").startsWith(%q) || (`+
				`object.metadata.?labels["pod-security.kubernetes.io/enforce"].orValue("") == "restricted" && object.metadata.?annotations["openshift.io/node-selector"].orValue("x") == "")`, copies),
			s.making(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: copies}}))

		done := 0
		for id, result := range byID(s.run(s.target, undisturbed)) {
			if result.Tier == string(catalogue.Scheduled) && result.Status != report.NotApplicable {
				done++
				Expect(result.Status).To(Equal(report.Passed), "%s: %s %+v %+v", id, result.Reason, result.Evidence, result.Controls)
			}
		}
		Expect(done).To(BeNumerically(">=", 9), "checks of the scheduled tier")

		// Checks that a policy does not concern pass as before.
		hindered := func(policy string) (n int) {
			for id, result := range byID(s.run(s.target, undisturbed)) {
				if result.Status == report.Inconclusive && strings.Contains(result.Reason, policy) {
					n++
					continue
				}
				Expect(result.Status).NotTo(Or(Equal(report.Failed), Equal(report.Inconclusive)), "%s does not name policy %s: %s %+v", id, policy, result.Reason, result.Evidence)
			}
			return n
		}
		s.refuse("no-evictions", "pods/eviction", "nothing is evicted here", `request.namespace == ""`, func() error {
			pods := &corev1.PodList{}
			if err := s.kube.List(ctx, pods, client.InNamespace(scenario.RouterNamespace), client.Limit(1)); err != nil || len(pods.Items) == 0 {
				return err
			}
			return s.kube.SubResource("eviction").Create(ctx, &pods.Items[0], &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}})
		})
		Expect(hindered("no-evictions")).To(BeNumerically(">=", 3))
		// All objects of a run need the label.
		labels := map[string]string{copyLabel: "x"}
		meta := metav1.ObjectMeta{Namespace: scenario.RouterNamespace, GenerateName: "x-", Labels: labels}
		s.refuse("unknown-labels", "pods", "label sno.solonode.github.io/conformance is unknown", fmt.Sprintf(`!(%q in object.metadata.?labels.orValue({}))`, copyLabel),
			s.making(&corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: container}}))
		Expect(hindered("unknown-labels")).To(BeNumerically(">=", 6))
		left := &corev1.NamespaceList{}
		Expect(s.kube.List(ctx, left, client.HasLabels{copyLabel})).To(Succeed())
		Expect(left.Items).To(BeEmpty())
		outage := s.result(s.target, "SNO-TOP-011", func() {})
		Expect(outage.Status).To(Equal(report.Passed), "the outage under policies: %s %+v", outage.Reason, outage.Evidence)
		Expect(outage.Evidence).NotTo(ContainElement(HaveField("Object", "A new Deployment")))
	})

	It("names an image that cannot be pulled, where copies of Deployments are needed", func(ctx SpecContext) {
		times := cluster.SimulatedTimes()
		times.Ready = 8 * time.Second // never reached
		s := startSystem(ctx, embeddedtarget.Options{Scenario: "none-sno", Variant: embeddedtarget.SNO, Times: times})
		Expect(s.Cluster.Component(embedded.Kubelets).Kill()).To(Succeed())
		go s.pullNothing()
		target, hindered := s.target, 0
		target.Image = "registry.invalid/nothing:1"
		for id, result := range byID(s.run(target, undisturbed)) {
			Expect(result.Status).NotTo(Equal(report.Failed), "%s: %s %+v", id, result.Reason, result.Evidence)
			if result.Status == report.Inconclusive {
				hindered++
				Expect(result.Reason).To(And(ContainSubstring("registry.invalid/nothing:1"), ContainSubstring("cannot be pulled"), ContainSubstring("--image")), id)
			}
		}
		Expect(hindered).To(BeNumerically(">=", 6), "checks that copy Deployments")
	})
})

// limitNamespaces creates a quota in every namespace of copies, and default limits that exceed every node, as a cluster
// may do for new namespaces.
func (s *system) limitNamespaces() {
	kube := s.Cluster.Clientset()
	watching, err := kube.CoreV1().Namespaces().Watch(s.ctx, metav1.ListOptions{LabelSelector: copyLabel})
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
		_, _ = kube.CoreV1().ResourceQuotas(namespace.Name).Create(s.ctx, &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: corev1.ResourceQuotaSpec{Hard: few},
		}, metav1.CreateOptions{})
		_, _ = kube.CoreV1().LimitRanges(namespace.Name).Create(s.ctx, &corev1.LimitRange{
			ObjectMeta: metav1.ObjectMeta{Name: "default"},
			Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Default: huge, DefaultRequest: huge}}},
		}, metav1.CreateOptions{})
	}
}

// refuse creates a policy, and returns when the API server refuses the attempt by it.
func (s *system) refuse(name, resource, message, expression string, attempt func() error) {
	GinkgoHelper()
	kube := s.Cluster.Client()
	Expect(kube.Create(s.ctx, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}},
			}}}},
			Validations: []admissionv1.Validation{{Expression: expression, Message: message}},
		},
	})).To(Succeed())
	Expect(kube.Create(s.ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	})).To(Succeed())
	Eventually(s.ctx, attempt).Should(MatchError(ContainSubstring(name)), "the policy is in force")
}

// making returns a dry run that creates an object.
func (s *system) making(object client.Object) func() error {
	return func() error {
		fresh, _ := object.DeepCopyObject().(client.Object)
		return s.Cluster.Client().Create(s.ctx, fresh, client.DryRunAll)
	}
}

// pullNothing acts as a kubelet for pods whose image cannot be pulled, and for deleted ones.
func (s *system) pullNothing() {
	ctx, kube := s.ctx, s.Cluster.Clientset()
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
