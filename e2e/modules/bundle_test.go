// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/steps"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/fakes/etcdmembers"
	"github.com/solonode/sno/testcluster/scenario"
)

// The bundle is installed as OLM does, as far as an embedded cluster shows: accounts, rights, Deployment and the other
// manifests. There is no catalogue and no upgrade.
var _ = It("All controllers patch an old release with the rights and the Deployment of OLM's bundle", Label(suite.Long), func(ctx SpecContext) {
	folder := GinkgoT().TempDir()
	command := exec.CommandContext(ctx, "go", "run", "./cmd/bundle", "-out", folder, "-image", "registry.invalid/sno/kubectl-sno@sha256:"+strings.Repeat("0", 64))
	command.Dir = "hack"
	out, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	s := steps.Start(ctx, framework.Config{
		Scenario: "ha", Release: scenario.OldRelease, VersionOperator: true, QuorumGuard: true,
		Hosts: map[framework.Module][]string{framework.Ingress: nil, framework.Console: {"--downloads=false"}, framework.Auth: nil},
	})
	etcd := suite.Must(etcdmembers.Start(ctx, s.Cluster, 1))
	Expect(s.SetTopology(ctx, configv1.SingleReplicaTopologyMode, configv1.SingleReplicaTopologyMode)).To(Succeed())
	for _, module := range framework.AllModules() {
		Expect(s.Prepare(ctx, module)).To(Succeed())
	}
	manifests := filepath.Join(folder, "bundle", "manifests")
	deployment := suite.Must(framework.InstallServiceVersion(ctx, s.Cluster, filepath.Join(manifests, "sno.clusterserviceversion.yaml"), framework.SystemNamespace))
	Expect(s.Kube.Create(ctx, deployment)).To(Succeed())
	for _, file := range suite.Must(filepath.Glob(filepath.Join(manifests, "*.yaml"))) {
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal(suite.Must(os.ReadFile(file)), &object.Object)).To(Succeed())
		if object.GetKind() == "ClusterServiceVersion" {
			continue
		}
		if namespaced := suite.Must(s.Kube.IsObjectNamespaced(object)); namespaced {
			object.SetNamespace(framework.SystemNamespace)
		}
		Expect(framework.Apply(ctx, s.Kube, object)).To(Succeed())
	}
	Eventually(ctx, func(g Gomega) {
		g.Expect(s.Kube.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
		g.Expect(deployment.Status.AvailableReplicas).To(BeEquivalentTo(1))
	}).Should(Succeed())
	pod := deployment.Spec.Template.Spec
	process := suite.Must(s.RunInstalled(ctx, programs.KubectlSNO, pod.ServiceAccountName, pod.Containers[0].Args, "--etcd-endpoints="+etcd.Endpoints[0]))
	for _, module := range framework.AllModules() {
		suite.Must(s.WaitReason(ctx, module, steps.Timeout, asExpected))
	}
	Expect(os.ReadFile(process.LogPath())).NotTo(ContainSubstring("is forbidden"))
})
