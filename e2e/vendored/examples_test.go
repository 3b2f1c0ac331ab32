// SPDX-License-Identifier: Apache-2.0

package vendored

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
	"github.com/solonode/sno/e2e/embeddedtarget"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/steps"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/scenario"
)

const (
	// quiet is how long an operator must not write to count as being at rest.
	quiet = 3 * time.Second

	olmUser = "system:serviceaccount:" + framework.OLMNamespace + ":olm-operator"
	// What depends on the topology. The Lease is written at the next renewal only.
	olmSingle   = "1, 0/1, no rule, on node-role.kubernetes.io/worker, no budget"
	olmSeveral  = "2, 1/1, DoNotSchedule by kubernetes.io/hostname, on node-role.kubernetes.io/worker, budget 1"
	olmAnywhere = "2, 1/1, DoNotSchedule by kubernetes.io/hostname, any node, budget 1"
)

// example is a cluster with an operator of the examples.
type example struct {
	*steps.Cluster
	filter embedded.AuditFilter
}

// writes returns the writes in the time after an act, without those of Leases.
func (e example) writes(act func()) (writes []string) {
	GinkgoHelper()
	offset := suite.Must(e.Cluster.Cluster.AuditOffset(e.Ctx))
	act()
	Consistently(e.Ctx, e.Ctx.Done()).WithTimeout(quiet).ShouldNot(BeClosed())
	filter := e.filter
	filter.WritesOnly = true
	events, _, err := e.Cluster.Cluster.AuditEvents(e.Ctx, offset, filter)
	Expect(err).NotTo(HaveOccurred())
	for _, event := range events {
		if event.ObjectRef == nil || event.ObjectRef.Resource != "leases" {
			writes = append(writes, event.Verb+" "+event.RequestURI)
		}
	}
	return writes
}

func (e example) set(mode configv1.TopologyMode) {
	GinkgoHelper()
	Expect(e.SetTopology(e.Ctx, mode, mode)).To(Succeed())
}

func (e example) patch(object client.Object, format string, args ...any) {
	GinkgoHelper()
	Expect(e.Kube.Patch(e.Ctx, object, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, args...)))).To(Succeed())
}

// budget describes a budget, or that there is none.
func (e example) budget(key client.ObjectKey) (string, error) {
	budget := &policyv1.PodDisruptionBudget{}
	if err := e.Kube.Get(e.Ctx, key, budget); err != nil {
		return "no budget", client.IgnoreNotFound(err)
	}
	return "budget " + budget.Spec.MaxUnavailable.String(), nil
}

// router returns what depends on the topology; "none" if the router does not exist.
func (e example) router(ingressController string) (string, error) {
	key := client.ObjectKey{Namespace: scenario.RouterNamespace, Name: "router-" + ingressController}
	router := &appsv1.Deployment{}
	if err := e.Kube.Get(e.Ctx, key, router); err != nil {
		return "none", client.IgnoreNotFound(err)
	}
	budget, err := e.budget(key)
	_, pinned := router.Spec.Template.Spec.NodeSelector[scenario.MasterTaint]
	rolling := router.Spec.Strategy.RollingUpdate
	return fmt.Sprintf("%d, %s/%s, pinned %t, %s", *router.Spec.Replicas, rolling.MaxUnavailable, rolling.MaxSurge, pinned, budget), err
}

var _ = It("The example on library-go makes the default IngressController where it belongs, follows the topology, repairs its router and rests", Label(suite.Smoke), func(ctx SpecContext) {
	e := example{steps.Start(ctx, framework.Config{Scenario: "none-sno", HostCreatesRouter: true}), embedded.AuditFilter{UserAgent: "cluster-ingress-operator"}}
	binary := suite.Must(programs.Build(ctx, programs.IngressExample, GinkgoWriter))
	suite.Must(e.Cluster.Cluster.Run(ctx, programs.IngressExample.Name, binary, "--kubeconfig", e.Cluster.Cluster.KubeconfigPath()))
	const single, several = "1, 25%/0, pinned true, no budget", "2, 25%/0, pinned true, budget 50%"
	expect := func(name, want string) {
		GinkgoHelper()
		Eventually(ctx, e.router).WithArguments(name).Should(Equal(want))
	}
	expect("default", single)
	own := &operatorv1.IngressController{ObjectMeta: metav1.ObjectMeta{Namespace: scenario.OperatorNamespace, Name: "own"}}
	Expect(e.Kube.Create(ctx, own)).To(Succeed())
	expect("own", single)
	e.set(configv1.HighlyAvailableTopologyMode)
	expect("own", several)
	e.patch(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: scenario.RouterNamespace, Name: "router-own"}}, `{"spec":{"replicas":5}}`)
	expect("own", several)
	e.set(configv1.SingleReplicaTopologyMode)
	expect("own", single)
	Expect(e.Kube.Delete(ctx, own)).To(Succeed())
	expect("own", "none")
	Expect(e.writes(func() {})).To(BeEmpty(), "at rest")
})

// shape returns what depends on the topology, of the operator of OLM.
func (e example) shape() (string, error) {
	key := client.ObjectKey{Namespace: framework.OLMNamespace, Name: framework.OLMOperand}
	deployment := &appsv1.Deployment{}
	if err := e.Kube.Get(e.Ctx, key, deployment); err != nil {
		return "", err
	}
	spec := deployment.Spec
	rule, pool := "no rule", "any node"
	for _, constraint := range spec.Template.Spec.TopologySpreadConstraints {
		rule = string(constraint.WhenUnsatisfiable) + " by " + constraint.TopologyKey
	}
	for label := range spec.Template.Spec.NodeSelector {
		pool = "on " + label
	}
	budget, err := e.budget(key)
	rolling := spec.Strategy.RollingUpdate
	return fmt.Sprintf("%d, %s/%s, %s, %s, %s", *spec.Replicas, rolling.MaxUnavailable, rolling.MaxSurge, rule, pool, budget), err
}

func (e example) expect(want string) {
	GinkgoHelper()
	Eventually(e.Ctx, e.shape).Should(Equal(want))
}

func (e example) lease() (coordinationv1.LeaseSpec, error) {
	lease := &coordinationv1.Lease{}
	err := e.Kube.Get(e.Ctx, client.ObjectKey{Namespace: framework.OLMNamespace, Name: framework.OLMLease}, lease)
	return lease.Spec, err
}

func (e example) leaseLasts(seconds int) {
	GinkgoHelper()
	Eventually(e.Ctx, e.lease).Should(HaveField("LeaseDurationSeconds", HaveValue(BeEquivalentTo(seconds))))
}

var _ = Describe("The operator of OLM, with the rights of its ClusterServiceVersion,", func() {
	It("follows the topology, repairs its objects, outlives the API server, and reads nothing else of OpenShift", Label(suite.Smoke), func(ctx SpecContext) {
		e := example{steps.Start(ctx, framework.Config{Scenario: "none-sno"}), embedded.AuditFilter{User: olmUser}}
		c := e.Cluster.Cluster
		program := suite.Must(e.RunOLMOperator(ctx))
		infrastructure := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: scenario.ClusterName}}
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: framework.OLMNamespace, Name: framework.OLMOperand}}
		touches := 0
		touch := func() {
			touches++
			e.patch(deployment, `{"metadata":{"annotations":{"example.com/touched":"%d times"}}}`, touches)
		}
		e.expect(olmSingle)
		e.leaseLasts(270)
		Expect(e.writes(func() {
			e.patch(infrastructure, `{"metadata":{"annotations":{"example.com/touched":"yes"}}}`)
			touch()
		})).To(BeEmpty())

		By("The topology changes while it runs")
		e.set(configv1.HighlyAvailableTopologyMode)
		e.expect(olmSeveral)
		Expect(e.writes(func() {})).To(BeEmpty())
		e.set(configv1.SingleReplicaTopologyMode)
		e.expect(olmSingle)

		By("Another client changes and deletes its objects")
		e.patch(deployment, `{"spec":{"replicas":5,"template":{"spec":{"tolerations":[{"operator":"Exists"}]}}}}`)
		e.expect(olmSingle)
		Expect(e.Kube.Delete(ctx, deployment.DeepCopy())).To(Succeed())
		e.expect(olmSingle)

		By("The API server restarts, and the topology changes before every watch is back")
		pid := program.PID()
		Expect(c.KillAPIServer()).To(Succeed())
		Expect(c.StartAPIServer(ctx)).To(Succeed())
		e.set(configv1.HighlyAvailableTopologyMode)
		e.expect(olmSeveral)
		Expect(program.PID()).To(Equal(pid), "the operator was not restarted")
		// A watch may come back later than another one, and the operator applies again what it does not see yet.
		Eventually(ctx, e.writes).WithArguments(touch).Should(BeEmpty())

		By("The Infrastructure is deleted")
		Expect(e.Kube.Delete(ctx, infrastructure.DeepCopy())).To(Succeed())
		Expect(e.writes(touch)).To(BeEmpty())
		e.expect(olmSeveral)

		By("A new process has no topology, and leaves the Deployment alone")
		Expect(program.Terminate(ctx)).To(Succeed())
		held := suite.Must(e.lease())
		Expect(ptr.Deref(held.HolderIdentity, "")).To(BeEmpty(), "the Lease is free after the end of its holder")
		Expect(e.writes(func() { Expect(program.Start(ctx)).To(Succeed()) })).To(BeEmpty())
		infrastructure.ResourceVersion = ""
		Expect(e.Kube.Create(ctx, infrastructure)).To(Succeed())
		e.set(configv1.SingleReplicaTopologyMode)
		e.expect(olmSingle)

		events, _, err := c.AuditEvents(ctx, 0, e.filter)
		Expect(err).NotTo(HaveOccurred())
		used := map[string]bool{}
		for _, event := range events {
			if event.ObjectRef != nil {
				used[event.ObjectRef.Resource+"."+event.ObjectRef.APIGroup] = true
			}
		}
		Expect(slices.Sorted(maps.Keys(used))).To(Equal([]string{
			"deployments.apps", "events.", "infrastructures.config.openshift.io", "leases.coordination.k8s.io", "poddisruptionbudgets.policy",
		}))
	})

	It("runs on a cluster that has no kind Infrastructure, and again when it has one", Label(suite.Long), func(ctx SpecContext) {
		outliving, started := steps.Outliving(ctx)
		c, err := embedded.Start(outliving, embedded.Config{Progress: GinkgoWriter, Keep: suite.Keep()})
		started()
		Expect(err).NotTo(HaveOccurred())
		steps.UntilEnd(c, func() { _ = c.Stop() })
		e := example{Cluster: &steps.Cluster{ScenarioCluster: framework.Attach(c, scenario.Scenario{}, GinkgoWriter), Ctx: ctx, Kube: c.Client()}}
		kind := &apiextensionsv1.CustomResourceDefinition{}
		Expect(e.Kube.Get(ctx, client.ObjectKey{Name: "infrastructures.config.openshift.io"}, kind)).To(Succeed())
		Expect(e.Kube.Delete(ctx, kind.DeepCopy())).To(Succeed())
		list := func(ctx context.Context) error { return e.Kube.List(ctx, &configv1.InfrastructureList{}) }
		Eventually(ctx, list).Should(Satisfy(apierrors.IsNotFound))
		program := suite.Must(e.RunOLMOperator(ctx))
		e.expect(olmAnywhere)
		e.leaseLasts(137)
		Expect(program.LogTail(4000)).To(ContainSubstring("openShift=false"))
		kind.SetResourceVersion("")
		Expect(e.Kube.Create(ctx, kind)).To(Succeed())
		Eventually(ctx, list).Should(Succeed())
		chosen := suite.Must(scenario.Lookup("none-sno"))
		Expect(chosen.Install(ctx, c)).To(Succeed())
		Expect(program.Terminate(ctx)).To(Succeed())
		Expect(program.Start(ctx)).To(Succeed())
		e.expect(olmSingle)
		e.leaseLasts(270)
	})

	It("passes the checks that concern every workload, which evaluate its Deployment and its Lease", Label(suite.Long), func(ctx SpecContext) {
		target := steps.StartSystem(ctx, embeddedtarget.Options{Scenario: "none-sno", Variant: embeddedtarget.Vendored}).Target()
		ids := []string{"SNO-TOP-003", "SNO-TOP-004", "SNO-TOP-007", "SNO-TOP-011"}
		run := suite.Must(runner.New(ctx, target, runner.Selection{Tiers: catalogue.Tiers(), IDs: ids}))
		defer func() { Expect(run.Close(ctx)).To(Succeed()) }()
		Expect(run.Start(ctx)).To(Succeed())
		seen := map[string]string{
			"SNO-TOP-003": "Deployment " + framework.OLMNamespace + "/" + framework.OLMOperand,
			"SNO-TOP-011": "Lease " + framework.OLMNamespace + "/" + framework.OLMLease,
		}
		for _, id := range ids {
			result := suite.Must(run.Result(ctx, id))
			Expect(result.Status).To(Equal(report.Passed), "%s: %s %+v", id, result.Reason, result.Evidence)
			if object := seen[id]; object != "" {
				Expect(result.Evidence).To(ContainElement(HaveField("Object", object)), id)
			}
		}
	})
})
