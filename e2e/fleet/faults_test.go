// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/hub"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/executor"
	"github.com/solonode/sno/fleet/overview"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/testcluster/embedded"
)

// reaction is how soon a kill follows the step.
const reaction = 10 * time.Millisecond

var _ = It("The manager or the work agent is killed between any two steps of an installation and of a release, which end as without that, and do nothing twice",
	Label("faults"), specTimeout, func(ctx SpecContext) {
		h, spokes := prepare(ctx, 2)
		manager := manage(ctx, h)
		config := configure(ctx, h, "v1", "ingress")
		for i, s := range spokes {
			_, code := sno(ctx, h, "opt-out", spokes[1-i].name)
			Expect(code).To(BeZero())
			onHub, onSpoke := suite.Must(h.AuditOffset(ctx)), suite.Must(s.Cluster.AuditOffset(ctx))
			kill := func(what string, done func() bool) {
				By(s.name + ": a kill after " + what)
				Eventually(ctx, done, patience, reaction).Should(BeTrue())
				victim := []*embedded.Component{manager, s.agent}[i]
				Expect(victim.Kill()).To(Succeed())
				if victim == manager { // another one would wait for the end of the Lease
					lease := newObject("coordination.k8s.io/v1", "Lease", fleetNamespace, fleet.Manager)
					Expect(client.IgnoreNotFound(h.Client().Delete(ctx, lease))).To(Succeed())
				}
				Expect(victim.Start(context.WithoutCancel(ctx))).To(Succeed())
			}
			onHubIs := func(name string) func() bool {
				return func() bool {
					return there(ctx, h.Cluster, workv1.GroupVersion.String(), "ManifestWork", s.name, name) != nil
				}
			}
			onSpokeIs := func(version, kind, namespace, name string) func() bool {
				return func() bool { return there(ctx, s.Cluster, version, kind, namespace, name) != nil }
			}

			if i == 0 {
				rollOut(ctx, h, config, config)
				kill("the claim is written", onHubIs(executor.ClaimName))
				kill("the rights are written", onHubIs(executor.WorkName))
				kill("the manifests are written", onHubIs("addon-sno-deploy-0"))
				kill("the controller is installed", onSpokeIs("apps/v1", "Deployment", fleetNamespace, "sno-ingress-controller"))
			} else {
				_, code = sno(ctx, h, "opt-out", "--undo", s.name)
				Expect(code).To(BeZero())
				kill("the Namespace is claimed", onSpokeIs("v1", "Namespace", "", fleetNamespace))
				kill("the rights are granted", onSpokeIs("rbac.authorization.k8s.io/v1", "ClusterRole", "", executor.Name))
				kill("the controller is installed", onSpokeIs("apps/v1", "Deployment", fleetNamespace, "sno-ingress-controller"))
			}
			Eventually(ctx, func() overview.Row { return table(ctx, h)[s.name] }, patience, poll).Should(is(overview.Settled))
			Expect(pinned(ctx, s)).To(BeTrue())

			_, code = sno(ctx, h, "opt-out", s.name)
			Expect(code).To(BeZero())
			if i == 0 {
				kill("the add-on is deleted", func() bool {
					addon := there(ctx, h.Cluster, "addon.open-cluster-management.io/v1alpha1", "ManagedClusterAddOn", s.name, fleet.AddOn)
					return addon == nil || addon.GetDeletionTimestamp() != nil
				})
				kill("the controller is to stop", func() bool {
					work := there(ctx, h.Cluster, workv1.GroupVersion.String(), "ManifestWork", s.name, "addon-sno-deploy-0")
					return work == nil || strings.Contains(fmt.Sprint(work.Object["spec"]), "replicas:0")
				})
				kill("the release is written", onHubIs("addon-sno-pre-delete"))
			} else {
				kill("the controller has stopped", func() bool { return deployment(ctx, s).Status.Replicas == 0 })
				kill("the release runs", onSpokeIs("batch/v1", "Job", fleetNamespace, "sno-release-ingress"))
			}
			Eventually(ctx, func() overview.Row { return table(ctx, h)[s.name] }, patience, poll).Should(is(overview.OptedOut))
			Expect(pinned(ctx, s)).To(BeFalse())
			for what, times := range created(ctx, h.Cluster, onHub, managerUser) {
				Expect(times).To(Equal(1), "the manager has created %s", what)
			}
			all := created(ctx, s.Cluster, onSpoke, hub.AgentUser)
			Expect(all).To(And(HaveKey("deployments sno-system/sno-ingress-controller"), HaveKey("jobs sno-system/sno-release-ingress")))
			for what, times := range all {
				Expect(times).To(Equal(1), "the work agent has created %s", what)
			}
		}
	})

var _ = It("A spoke that is changed, away for long, or of another hub, a hub that is away or refuses, and a new manager, release and undo nothing",
	Label("faults"), specTimeout, func(ctx SpecContext) {
		h, spokes := prepare(ctx, 2)
		one, two := spokes[0], spokes[1]
		manager := manage(ctx, h)
		label(ctx, h, one, fleet.CanaryLabel)
		v1 := configure(ctx, h, "v1", "ingress")
		rollOut(ctx, h, v1, v1)
		row := func(s *spoke) func() overview.Row { return func() overview.Row { return table(ctx, h)[s.name] } }
		settled := func() {
			GinkgoHelper()
			for _, s := range spokes {
				Eventually(ctx, row(s), patience, poll).Should(is(overview.Settled))
			}
		}
		settled()
		installed := deployment(ctx, one)
		same := func() {
			GinkgoHelper()
			now := deployment(ctx, one)
			Expect(now.UID).To(Equal(installed.UID))
			Expect(now.Generation).To(Equal(installed.Generation))
		}

		By("somebody on a spoke takes the field back whenever it is there")
		Eventually(ctx, func() overview.Row {
			if pinned(ctx, one) {
				unpin(ctx, one)
			}
			return row(one)()
		}, patience, reaction).Should(And(is(overview.NotInForce), HaveField("Reason", "Reverted"), HaveField("Module", "ingress")))
		By("and stops; the controller, which would wait five minutes before it tries again, starts again")
		Expect(one.Cluster.Client().DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(fleetNamespace))).To(Succeed())
		settled()
		Expect(pinned(ctx, one)).To(BeTrue())

		By("a controller is deleted on a spoke")
		Expect(one.Cluster.Client().Delete(ctx, deployment(ctx, one))).To(Succeed())
		Eventually(ctx, func() bool {
			now := there(ctx, one.Cluster, "apps/v1", "Deployment", fleetNamespace, "sno-ingress-controller")
			r := row(one)()
			return r.State == overview.NotInForce && r.Reason == "ResourceNotAvailable" && r.Module == "ingress" ||
				now != nil && now.GetUID() != installed.UID // the work agent was about to apply its manifests anyway
		}, patience, poll).Should(BeTrue())
		By("the work agent repairs it: when it starts again, or within six minutes")
		Expect(one.agent.Kill()).To(Succeed())
		Expect(one.agent.Start(context.WithoutCancel(ctx))).To(Succeed())
		settled()
		installed = deployment(ctx, one)

		By("a spoke is away for twenty leases, which are minutes with the default")
		object := suite.Must(one.Object(ctx, framework.Ingress)).GetResourceVersion()
		quiet := suite.Must(one.Cluster.AuditOffset(ctx))
		Expect(one.agent.Kill()).To(Succeed())
		Eventually(ctx, row(one), patience, poll).Should(is(overview.Away))
		suite.Elapse(ctx, 20*leaseSeconds*time.Second)
		Expect(row(one)()).To(is(overview.Away))
		Expect(writes(ctx, one, quiet)).To(BeEmpty())
		Expect(one.agent.Start(context.WithoutCancel(ctx))).To(Succeed())
		settled()
		same()

		By("the hub is away")
		processes, agent := one.kubelet.pids(), one.agent.PID()
		quiet = suite.Must(one.Cluster.AuditOffset(ctx)) // the work agent applies again what is there every four to six minutes
		Expect(h.KillAPIServer()).To(Succeed())
		suite.Elapse(ctx, *away)
		Expect(one.kubelet.pids()).To(Equal(processes), "controllers have restarted")
		Expect(one.agent.PID()).To(Equal(agent), "the work agent has restarted")
		Expect(writes(ctx, one, quiet)).To(BeEmpty())
		By("it learns after its return what a person did meanwhile")
		optOut := func(value string) {
			GinkgoHelper()
			Expect(two.Cluster.Client().Patch(ctx, suite.Must(two.Object(ctx, framework.Ingress)), client.RawPatch("application/merge-patch+json",
				fmt.Appendf(nil, `{"metadata": {"annotations": {%q: %s}}}`, patch.OptOutAnnotation, value)))).To(Succeed())
		}
		optOut(`"all"`)
		suite.Must(two.WaitReason(ctx, framework.Ingress, patience, patch.ReasonOptedOut))
		Expect(h.StartAPIServer(ctx)).To(Succeed())
		Eventually(ctx, row(two), patience, poll).Should(And(is(overview.Settled), HaveField("Reason", patch.ReasonOptedOut)))
		optOut("null")
		Eventually(ctx, row(two), patience, poll).Should(And(is(overview.Settled), HaveField("Reason", patch.ReasonAsExpected)))
		settled()
		same()
		Expect(suite.Must(one.Object(ctx, framework.Ingress)).GetResourceVersion()).To(Equal(object))

		By("the hub refuses ManifestWorks as too large")
		refusing(ctx, h, true)
		v2 := configure(ctx, h, "v2", "ingress")
		rollOut(ctx, h, v2, v2)
		Eventually(ctx, row(one), patience, poll).Should(And(is(overview.Refused), HaveField("Message", And(ContainSubstring(tooLarge), Not(ContainSubstring("\n"))))))
		same()
		rollOut(ctx, h, v1, v1)
		settled()
		same()
		refusing(ctx, h, false)

		By("a new version of the manager, with which controllers would stop, changes nothing")
		Expect(manager.Terminate(ctx)).To(Succeed())
		next := runManager(ctx, h, nextVersion(ctx))
		var hash string
		Eventually(ctx, func() string {
			if found := regexp.MustCompile(`manifests="([0-9a-f]{10})"`).FindAllStringSubmatch(next.LogTail(1<<20), -1); len(found) > 0 {
				hash = found[len(found)-1][1]
			}
			return hash
		}, patience, poll).ShouldNot(Or(BeEmpty(), Equal(v1.Spec.CustomizedVariables[3].Value)))
		Consistently(ctx, func() int32 { return *deployment(ctx, one).Spec.Replicas + *deployment(ctx, two).Spec.Replicas }, 15*time.Second, poll).Should(Equal(int32(2)))
		settled()
		same()
		By("until a configuration names its manifests, for the canary")
		rollOut(ctx, h, v1, configureManifests(ctx, h, "v1", hash, "ingress"))
		Eventually(ctx, func() int32 { return *deployment(ctx, one).Spec.Replicas }, patience, poll).Should(BeZero())
		Expect(*deployment(ctx, two).Spec.Replicas).To(Equal(int32(1)))

		By("another hub gets a cluster of this one")
		rollOut(ctx, h, v1, v1) // of other manifests than this manager has, so the canary is refused
		outliving, started := context.WithCancel(context.WithoutCancel(ctx))
		defer started()
		other, err := hub.Start(outliving, embedded.Config{Keep: suite.Keep(), Progress: GinkgoWriter})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { _ = other.Stop() })
		suite.Must(other.Join(ctx, two.name, two.Cluster))
		before := deployment(ctx, two)
		manage(ctx, other)
		theirs := configure(ctx, other, "v9", "ingress")
		rollOut(ctx, other, theirs, theirs)
		Eventually(ctx, func() overview.Row { return table(ctx, other)[two.name] }, patience, poll).Should(And(
			is(overview.Refused), HaveField("Message", ContainSubstring(executor.ErrOtherHub.Error()))))
		Consistently(ctx, func() int64 { return deployment(ctx, two).Generation }, 10*time.Second, poll).Should(Equal(before.Generation))
		Expect(row(two)()).To(is(overview.Settled))
	})

// there returns an object, nil if it does not exist.
func there(ctx context.Context, c *embedded.Cluster, version, kind, namespace, name string) *unstructured.Unstructured {
	object := newObject(version, kind, namespace, name)
	if err := c.Client().Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return nil
	}
	return object
}

// created returns how often a user has created what, since an offset.
func created(ctx context.Context, c *embedded.Cluster, since int64, user string) map[string]int {
	GinkgoHelper()
	events, _, err := c.AuditEvents(ctx, since, embedded.AuditFilter{User: user, WritesOnly: true})
	Expect(err).NotTo(HaveOccurred())
	all := map[string]int{}
	for _, e := range events {
		if e.ResponseStatus != nil && e.ResponseStatus.Code == 201 && !strings.Contains(e.RequestURI, "dryRun=All") &&
			!strings.Contains("events leases subjectaccessreviews selfsubjectaccessreviews certificatesigningrequests tokenreviews", e.ObjectRef.Resource) {
			all[strings.TrimSpace(e.ObjectRef.Resource+" "+strings.TrimPrefix(e.ObjectRef.Namespace+"/", "/")+e.ObjectRef.Name)]++
		}
	}
	return all
}

// unpin removes the field of the ingress controller, as a person does.
func unpin(ctx context.Context, s *spoke) {
	GinkgoHelper()
	live := suite.Must(s.Object(ctx, framework.Ingress))
	unstructured.RemoveNestedField(live.Object, "spec", "nodePlacement")
	_ = s.Cluster.Client().Update(ctx, live, client.FieldOwner("kubectl-edit")) // somebody may write meanwhile
}

// tooLarge is what the webhook of Open Cluster Management says, for which an admission policy stands in.
const tooLarge = "the size of manifests is 600000 bytes which exceeds the 512000 limit"

func refusing(ctx context.Context, h *hub.Hub, is bool) {
	GinkgoHelper()
	for _, manifest := range []string{`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: limit}, spec: {
		matchConstraints: {resourceRules: [{apiGroups: [work.open-cluster-management.io], apiVersions: ["*"], operations: [UPDATE], resources: [manifestworks]}]},
		validations: [{expression: "object.spec.workload == oldObject.spec.workload", message: "` + tooLarge + `"}]}}`,
		`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: limit}, spec: {policyName: limit, validationActions: [Deny]}}`,
	} {
		if is {
			apply(ctx, h.Cluster, manifest)
		}
	}
	if !is {
		Expect(h.Client().Delete(ctx, newObject("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "", "limit"))).To(Succeed())
	}
}

// nextVersion builds a manager whose manifests have no replicas of the ingress controller.
func nextVersion(ctx context.Context) string {
	GinkgoHelper()
	root, folder := suite.Must(programs.Root(ctx)), GinkgoT().TempDir()
	name := filepath.Join(root, "fleet", "manifests", "ingress.yaml")
	text := string(suite.Must(os.ReadFile(name)))
	changed, overlay, binary := filepath.Join(folder, "ingress.yaml"), filepath.Join(folder, "overlay.json"), filepath.Join(folder, "fleet-controller")
	Expect(strings.Count(text, "\n  replicas: 1\n")).To(Equal(1))
	Expect(os.WriteFile(changed, []byte(strings.Replace(text, "\n  replicas: 1\n", "\n  replicas: 0\n", 1)), 0o600)).To(Succeed())
	Expect(os.WriteFile(overlay, suite.Must(json.Marshal(map[string]any{"Replace": map[string]string{name: changed}})), 0o600)).To(Succeed())
	build := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(root, "fleet"), "-overlay="+overlay, "-o", binary, "./cmd/fleet-controller")
	build.Stdout, build.Stderr = GinkgoWriter, GinkgoWriter
	Expect(build.Run()).To(Succeed())
	return binary
}
