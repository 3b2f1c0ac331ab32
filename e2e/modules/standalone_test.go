// SPDX-License-Identifier: Apache-2.0

package modules

import (
	_ "embed"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/steps"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/testcluster/operand"
	"github.com/solonode/sno/testcluster/scenario"
)

const overrideKey = "useUnsupportedUnsafeNonHANonProductionUnstableOAuthServer"

// highlyAvailable returns the Deployments after the console module has released them: downloads may be on any node.
func highlyAvailable() []scenario.Operand {
	operands := scenario.Operands{Pool: scenario.PoolMaster, Console: 2, OAuth: 3}.List()
	operands[1].Pool = scenario.PoolWorker
	return operands
}

// startAlone starts a release without topologies (R-SUITE-8): no console and no authentication operator runs, downloads
// is a static manifest of the cluster-version-operator, and console and the OAuth servers are an installer's.
func startAlone(ctx SpecContext, name string) *steps.Cluster {
	GinkgoHelper()
	c := steps.Start(ctx, framework.Config{Scenario: name, Release: scenario.OldRelease, VersionOperator: true})
	for _, deployment := range []*appsv1.Deployment{
		installed(scenario.ConsoleNamespace, "console", "{app: console, component: ui}", 2, 1, 1),
		installed(scenario.OAuthServerNamespace, "oauth-openshift", "{app: oauth-openshift}", 3, 2, 3),
		installed(scenario.OAuthAPIServerNamespace, "apiserver", "{app: openshift-oauth-apiserver}", 3, 1, 0),
	} {
		Expect(c.Kube.Create(ctx, deployment, client.FieldOwner(scenario.InstallerManager))).To(Succeed())
	}
	return c
}

func reasons(console, auth string) map[framework.Module]string {
	return map[framework.Module]string{framework.Console: console, framework.Auth: auth}
}

// Fields of the cluster-version-operator are taken over in any case, those of the installer only with
// --force-conflicts.
var _ = Describe("The controllers of console and auth alone, on a release without topologies,", func() {
	onOneNode := func(ctx SpecContext, name string) *steps.Cluster {
		GinkgoHelper()
		c := startAlone(ctx, name)
		c.RunAll(reasons("FieldOwnedByOther", "FieldOwnedByOther"))
		want := c.Scenario.Operands.List()
		c.Settled(want[1:2]) // downloads
		overridden(c)
		untouched(c, want[0], want[2], want[3])
		c.Quiet()

		c.RunAll(reasons(asExpected, asExpected), "--force-conflicts")
		c.Disturb(want)
		overridden(c)
		c.Quiet()
		return c
	}
	It("take over what runs on one node, and follow its growth to three and back", Label(suite.Long), func(ctx SpecContext) {
		c := onOneNode(ctx, "none-sno")
		want := c.Scenario.Operands.List()
		c.AddMasters("master-1", "master-2")
		c.Quiet()
		c.Settled(want)

		Expect(c.SetTopology(ctx, configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableTopologyMode)).To(Succeed())
		c.Settled(highlyAvailable()) // console and downloads are released and as before
		c.Expect(reasons(notNeeded, asExpected))
		released(c)
		c.Quiet()

		Expect(c.SetTopology(ctx, configv1.SingleReplicaTopologyMode, configv1.SingleReplicaTopologyMode)).To(Succeed())
		c.Settled(want)
		c.Expect(reasons(asExpected, asExpected))
		overridden(c)
		c.Quiet()
		c.Settled(want)
	})
	It("take over what runs on one node with workers", Label(suite.Long), func(ctx SpecContext) { onOneNode(ctx, "none-sno-day1-workers") })
	It("leave what is right for three nodes", Label(suite.Long), func(ctx SpecContext) {
		c := startAlone(ctx, "ha")
		c.RunAll(reasons(notNeeded, asExpected), "--force-conflicts")
		c.Disturb(highlyAvailable()) // nothing pins downloads there
		released(c)
		c.Quiet()
	})
})

// overridden checks what an old release needs on one node: the entry that makes downloads unmanaged, which blocks
// upgrades, and the override of the authentication operator.
func overridden(c *steps.Cluster) {
	GinkgoHelper()
	Expect(version(c).Spec.Overrides).To(HaveExactElements(And(HaveField("Name", "downloads"), HaveField("Unmanaged", true))))
	value, _ := override(c)
	Expect(value).To(BeTrue(), overrideKey)
}

func released(c *steps.Cluster) {
	GinkgoHelper()
	Expect(version(c).Spec.Overrides).To(BeEmpty())
	_, found := override(c)
	Expect(found).To(BeFalse(), overrideKey)
}

func version(c *steps.Cluster) *configv1.ClusterVersion {
	GinkgoHelper()
	version := &configv1.ClusterVersion{}
	Expect(c.Kube.Get(c.Ctx, client.ObjectKey{Name: scenario.ClusterVersionName}, version)).To(Succeed())
	return version
}

func override(c *steps.Cluster) (value any, found bool) {
	GinkgoHelper()
	authentication := suite.Must(c.Object(c.Ctx, framework.Auth))
	value, found, err := unstructured.NestedFieldNoCopy(authentication.Object, "spec", "unsupportedConfigOverrides", overrideKey)
	Expect(err).NotTo(HaveOccurred())
	return value, found
}

// untouched checks that the modules own no field of what the installer made.
func untouched(c *steps.Cluster, operands ...scenario.Operand) {
	GinkgoHelper()
	for _, o := range operands {
		live := suite.Must(operand.Deployment(c.Ctx, c.Kube, o))
		for _, module := range []framework.Module{framework.Console, framework.Auth} {
			owned := suite.Must(ownership.Applied(live, module.FieldOwner(), ""))
			Expect(owned.Empty()).To(BeTrue(), "%s owns %s of %s", module, owned, o.Name)
		}
	}
}

//go:embed made-for-three.yaml
var madeForThree string

// installed returns a Deployment of an installer.
func installed(namespace, name, labels string, replicas, unavailable, surge int) *appsv1.Deployment {
	GinkgoHelper()
	text := strings.NewReplacer("NAMESPACE", namespace, "NAME", name, "LABELS", labels, "REPLICAS", strconv.Itoa(replicas),
		"UNAVAILABLE", strconv.Itoa(unavailable), "SURGE", strconv.Itoa(surge)).Replace(madeForThree)
	deployment := &appsv1.Deployment{}
	Expect(yaml.UnmarshalStrict([]byte(text), deployment)).To(Succeed())
	return deployment
}
