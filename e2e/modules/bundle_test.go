// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/steps"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/testcluster/fakes/etcdmembers"
	"github.com/solonode/sno/testcluster/scenario"
)

const (
	// conditionCRD is the file with the CustomResourceDefinition of OperatorConditions.
	conditionCRD = "cli/operatorcondition/testdata/operators.coreos.com_operatorconditions.yaml"
	// nameVariable is the environment variable that OLM adds to the containers, with the name of the OperatorCondition.
	nameVariable = "OPERATOR_CONDITION_NAME"
	// templateAnnotation has the namespace that the web console makes for the operator.
	templateAnnotation = "operatorframework.io/suggested-namespace-template"
)

// The bundle is installed as OLM does, as far as an embedded cluster shows: accounts, rights, Deployment,
// OperatorCondition and the other manifests. There is no catalogue and no upgrade.
var _ = It("All controllers have the conditions of config/all when the bundle is installed, and report claims to OLM", Label(suite.Long), func(ctx SpecContext) {
	version, others := writeBundle(ctx)
	DeferCleanup(os.Setenv, nameVariable, os.Getenv(nameVariable))
	Expect(os.Setenv(nameVariable, version.Metadata.Name)).To(Succeed())
	s, arguments := startOldRelease(ctx)
	Expect(s.Cluster.InstallCRDs(ctx, nil, []string{conditionCRD})).To(Succeed())
	deployment, condition := install(s, version, others)
	Eventually(ctx, func(g Gomega) {
		g.Expect(s.Kube.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
		g.Expect(deployment.Status.AvailableReplicas).To(BeEquivalentTo(1))
	}).Should(Succeed())
	pod := deployment.Spec.Template.Spec
	_, err := s.RunInstalled(ctx, programs.KubectlSNO, pod.ServiceAccountName, pod.Containers[0].Args, arguments...)
	Expect(err).NotTo(HaveOccurred())
	bundled := patched(s)

	upgradeable := func(status, reason string, parts ...string) {
		GinkgoHelper()
		Eventually(ctx, func(g Gomega) {
			g.Expect(s.Kube.Get(ctx, client.ObjectKeyFromObject(condition), condition)).To(Succeed())
			conditions, _, err := unstructured.NestedSlice(condition.Object, "spec", "conditions")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(conditions).To(HaveExactElements(And(
				HaveKeyWithValue("type", "Upgradeable"), HaveKeyWithValue("status", status), HaveKeyWithValue("reason", reason))))
			for _, part := range parts {
				g.Expect(conditions[0]).To(HaveKeyWithValue("message", ContainSubstring(part)))
			}
		}).Should(Succeed())
	}
	upgradeable("False", "OverrideClaimed", "Deployment openshift-console/downloads (module console)",
		"Deployment openshift-etcd/etcd-quorum-guard (module etcdguard)", "docs/undo.md#before-an-upgrade")
	for _, module := range []framework.Module{framework.Console, framework.EtcdGuard} {
		object, err := s.Object(ctx, module)
		Expect(err).NotTo(HaveOccurred())
		change := client.MergeFrom(object.DeepCopy())
		object.SetAnnotations(map[string]string{patch.OptOutAnnotation: "all"})
		Expect(s.Kube.Patch(ctx, object, change)).To(Succeed())
	}
	upgradeable("True", "AsExpected")
	nothingForbidden(s)
	s.Stop()

	s, arguments = startOldRelease(ctx)
	_, err = s.RunAllControllers(ctx, arguments...)
	Expect(err).NotTo(HaveOccurred())
	Expect(patched(s)).To(Equal(bundled))
})

// startOldRelease starts an old release on one node, where five modules have something to patch and two claim overrides.
func startOldRelease(ctx SpecContext) (s *steps.Cluster, arguments []string) {
	GinkgoHelper()
	s = steps.Start(ctx, framework.Config{
		Scenario: "ha", Release: scenario.OldRelease, VersionOperator: true, QuorumGuard: true,
		Hosts: map[framework.Module][]string{framework.Ingress: nil, framework.Console: {"--downloads=false"}, framework.Auth: nil},
	})
	etcd, err := etcdmembers.Start(ctx, s.Cluster, 1)
	Expect(err).NotTo(HaveOccurred())
	Expect(s.SetTopology(ctx, configv1.SingleReplicaTopologyMode, configv1.SingleReplicaTopologyMode)).To(Succeed())
	for _, module := range framework.AllModules() {
		Expect(s.Prepare(ctx, module)).To(Succeed())
	}
	return s, []string{"--etcd-endpoints=" + etcd.Endpoints[0]}
}

// patched waits until every module has settled, and returns the conditions.
func patched(s *steps.Cluster) map[framework.Module]framework.Condition {
	GinkgoHelper()
	conditions := map[framework.Module]framework.Condition{}
	for _, module := range framework.AllModules() {
		condition, err := s.WaitReason(s.Ctx, module, steps.Timeout, asExpected)
		Expect(err).NotTo(HaveOccurred(), string(module))
		conditions[module] = condition
	}
	nothingForbidden(s)
	return conditions
}

func nothingForbidden(s *steps.Cluster) {
	GinkgoHelper()
	Expect(os.ReadFile(s.Cluster.Program(programs.KubectlSNO.Name).LogPath())).NotTo(ContainSubstring("is forbidden"))
}

// writeBundle returns the ClusterServiceVersion of the bundle and its other manifests.
func writeBundle(ctx SpecContext) (version *framework.ServiceVersion, others []*unstructured.Unstructured) {
	GinkgoHelper()
	folder := GinkgoT().TempDir()
	command := exec.CommandContext(ctx, "go", "run", "./cmd/bundle", "-out", folder, "-image", "registry.invalid/sno/kubectl-sno@sha256:"+strings.Repeat("0", 64))
	command.Dir = "hack"
	out, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	files, err := filepath.Glob(filepath.Join(folder, "bundle", "manifests", "*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		if strings.HasSuffix(file, ".clusterserviceversion.yaml") {
			version, err = framework.ReadServiceVersion(file)
			Expect(err).NotTo(HaveOccurred())
			continue
		}
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal(text, &object.Object)).To(Succeed())
		others = append(others, object)
	}
	Expect(version).NotTo(BeNil())
	Expect(version.Spec.Install.Spec.Deployments).To(HaveLen(1))
	return version, others
}

// install makes what OLM makes for a bundle, with the same rights in the operator's namespace.
func install(s *steps.Cluster, v *framework.ServiceVersion, others []*unstructured.Unstructured) (deployment *appsv1.Deployment, condition *unstructured.Unstructured) {
	GinkgoHelper()
	for _, api := range v.Spec.NativeAPIs {
		_, err := s.Kube.RESTMapper().RESTMapping(schema.GroupKind{Group: api.Group, Kind: api.Kind}, api.Version)
		Expect(err).NotTo(HaveOccurred(), "requirement %s", api)
	}
	namespace := &corev1.Namespace{}
	Expect(json.Unmarshal([]byte(v.Metadata.Annotations[templateAnnotation]), namespace)).To(Succeed())
	condition = &unstructured.Unstructured{}
	condition.SetGroupVersionKind(schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v2", Kind: "OperatorCondition"})
	condition.SetNamespace(namespace.Name)
	condition.SetName(v.Metadata.Name)
	installed := v.Spec.Install.Spec.Deployments[0]
	deployment = &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: installed.Name, Labels: installed.Label}, Spec: installed.Spec,
	}
	for i := range deployment.Spec.Template.Spec.Containers {
		container := &deployment.Spec.Template.Spec.Containers[i]
		container.Env = append(container.Env, corev1.EnvVar{Name: nameVariable, Value: condition.GetName()})
	}
	objects := append([]client.Object{namespace}, v.Rights(namespace.Name)...)
	objects = append(objects, condition)
	objects = append(objects, framework.RoleFor(namespace.Name, condition.GetName(), deployment.Spec.Template.Spec.ServiceAccountName, []rbacv1.PolicyRule{{
		APIGroups: []string{"operators.coreos.com"}, Resources: []string{"operatorconditions"}, ResourceNames: []string{condition.GetName()},
		Verbs: []string{"get", "update", "patch"},
	}})...)
	Expect(framework.Create(s.Ctx, s.Kube, append(objects, deployment)...)).To(Succeed())
	for _, object := range others {
		mapping, err := s.Kube.RESTMapper().RESTMapping(object.GroupVersionKind().GroupKind())
		if err == nil && mapping.Scope.Name() == "namespace" {
			object.SetNamespace(namespace.Name)
		}
		Expect(framework.Apply(s.Ctx, s.Kube, object)).To(Succeed())
	}
	return deployment, condition
}
