// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/hub"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/agent"
	"github.com/solonode/sno/fleet/configuration"
	"github.com/solonode/sno/fleet/overview"
	"github.com/solonode/sno/fleet/plan"
	"github.com/solonode/sno/fleet/rollout"
	"github.com/solonode/sno/testcluster/embedded"
)

const (
	fleetNamespace = fleet.Namespace // of the Placements on the hub, and of the controllers on the spokes
	deadline       = 40 * time.Second
	patience       = 4 * time.Minute
	// leaseSeconds instead of 60 make minutes of absence of seconds: a hub waits for five leases.
	leaseSeconds = 6
)

var limits = rollout.Limits{MaxConcurrency: intstr.FromInt32(1), MaxFailures: intstr.FromInt32(0), ProgressDeadline: deadline}

var _ = It("A manager rolls out a canary and then the others, stops where a spoke fails, keeps what an edited configuration or an absence would break, "+
	"leaves other spokes alone, and releases every field at the end",
	Label(suite.Smoke, "rollout"), specTimeout, func(ctx SpecContext) {
		h, spokes := prepare(ctx, max(*spokes, 3))
		canary, others, last := spokes[0], spokes[1:], spokes[len(spokes)-1]
		untouched := suite.Must(last.Cluster.AuditOffset(ctx))
		label(ctx, h, canary, fleet.CanaryLabel)
		manage(ctx, h)
		_, code := sno(ctx, h, "opt-out", last.name)
		Expect(code).To(BeZero())
		view := func() map[string]overview.Row { return table(ctx, h) }
		var refused []string
		state := func(s *spoke) func() overview.Row {
			return func() overview.Row {
				row := view()[s.name]
				if row.State == overview.Refused {
					refused = append(refused, row.Cluster+" "+row.Message)
				}
				return row
			}
		}
		version := func(s *spoke) func() string {
			return func() string { return strings.Join(view()[s.name].Images, " ") }
		}

		By("a plan of the first configuration puts equal spokes together, and changes nothing on them")
		v1 := configure(ctx, h, "v1", "ingress")
		planned(ctx, h, spokes, v1)

		By("the first configuration reaches all selected spokes, and each spoke only by its executor's rights")
		began := time.Now()
		rollOut(ctx, h, v1, v1)
		for _, s := range spokes[:len(spokes)-1] {
			Eventually(ctx, state(s), patience, poll).Should(is(overview.Settled))
			Expect(pinned(ctx, s)).To(BeTrue())
			agents, _, err := s.Cluster.AuditEvents(ctx, 0, embedded.AuditFilter{User: hub.AgentUser, Group: operatorv1.GroupName, WritesOnly: true})
			Expect(err).NotTo(HaveOccurred())
			Expect(agents).To(BeEmpty(), "the agent only reads operators' objects")
		}
		Expect(refused).To(BeEmpty(), "while everything is well")
		suite.Record(suite.Fleet, suite.Figure("From a configuration to in force on two spokes, one at a time", "%s", suite.Seconds(time.Since(began))))
		Expect(view()[last.name].State).To(Equal(overview.OptedOut))
		Expect(writes(ctx, last, untouched)).To(BeEmpty(), "a spoke that is not selected")
		Expect(pinned(ctx, last)).To(BeFalse())

		By("the phases of an installation are shown until it is complete")
		const published = "{apiVersion: v1, kind: ConfigMap, metadata: {name: sno-install, namespace: kube-system}, data: {status: %s, phase: 'post-reboot: phase operators (4 of 9)', message: etcd}}"
		apply(ctx, canary.Cluster, fmt.Sprintf(published, "installing"))
		Eventually(ctx, state(canary), patience, poll).Should(And(is(overview.Installing), HaveField("Message", "post-reboot: phase operators (4 of 9): etcd")))
		Eventually(ctx, func() string {
			out, _ := sno(ctx, h, "status", canary.name, "-o", "jsonpath={.clusters[*].reason}")
			return out
		}, patience, time.Second).Should(Equal("ClusterInstalling"))
		apply(ctx, canary.Cluster, fmt.Sprintf(published, "complete"))
		Eventually(ctx, state(canary), patience, poll).Should(is(overview.Settled))

		By("the opt-out of a highly available cluster ends, which is selected once it is a single node")
		claim(ctx, last, configv1.HighlyAvailableTopologyMode)
		Eventually(ctx, func() string { return view()[last.name].ControlPlane }, patience, poll).Should(Equal(string(configv1.HighlyAvailableTopologyMode)))
		_, code = sno(ctx, h, "opt-out", "--undo", last.name)
		Expect(code).To(BeZero())
		Consistently(ctx, func() []string { return decided(ctx, h, rollout.SingleNodes) }, 3*time.Second, poll).ShouldNot(ContainElement(last.name))
		Expect(writes(ctx, last, untouched)).To(BeEmpty())
		claim(ctx, last, configv1.SingleReplicaTopologyMode)
		Eventually(ctx, state(last), patience, poll).Should(is(overview.Settled))
		Expect(pinned(ctx, last)).To(BeTrue())

		By("a manifest beyond the rights of the executor is refused")
		escalate(ctx, h, canary)

		By("the canary gets another configuration")
		v2 := configure(ctx, h, "v2", "ingress")
		rollOut(ctx, h, v1, v2)
		Eventually(ctx, version(canary), patience, poll).Should(HaveSuffix(":v2"))
		Eventually(ctx, state(canary), patience, poll).Should(is(overview.Settled))

		By("the rollout to the others stops at the first of them, which fails")
		broken := ":v2"
		others[0].kubelet.broken.Store(&broken)
		rollOut(ctx, h, v2, v2)
		Eventually(ctx, version(others[0]), patience, poll).Should(HaveSuffix(":v2"))
		Eventually(ctx, func() string { return progress(ctx, h) }, patience, poll).Should(ContainSubstring("1 timeout"))
		Consistently(ctx, version(last), 10*time.Second, poll).Should(HaveSuffix(":v1"))
		out, code := sno(ctx, h, "status", others[0].name, "-o", "jsonpath={.clusters[*].state} {.clusters[*].module} {.clusters[*].reason}")
		Expect(out).To(HavePrefix("Progressing ingress "), "the pod before is in force, and the new one does not start")
		Expect(code).To(Equal(overview.ExitWaiting))
		sno(ctx, h, "status", "-o", "wide")

		By("it goes on when the spoke is repaired")
		others[0].kubelet.broken.Store(nil)
		for _, s := range spokes {
			Eventually(ctx, version(s), patience, poll).Should(HaveSuffix(":v2"))
			Eventually(ctx, state(s), patience, poll).Should(is(overview.Settled))
		}

		By("a configuration that is edited in place is refused")
		generation := deployment(ctx, canary).Generation
		edit(ctx, h, v2.Name, "v3")
		Eventually(ctx, state(canary), patience, poll).Should(And(
			is(overview.Refused), HaveField("Message", ContainSubstring(configuration.ErrEdited.Error()))))
		Expect(deployment(ctx, canary).Generation).To(Equal(generation))
		edit(ctx, h, v2.Name, "v2")
		Eventually(ctx, state(canary), patience, poll).Should(is(overview.Settled))

		By("a spoke that is away keeps its controllers")
		before := deployment(ctx, last).UID
		Expect(last.agent.Kill()).To(Succeed())
		Eventually(ctx, state(last), patience, poll).Should(is(overview.Away))
		Expect(last.agent.Start(context.WithoutCancel(ctx))).To(Succeed())
		Eventually(ctx, state(last), patience, poll).Should(is(overview.Settled))
		Expect(deployment(ctx, last).UID).To(Equal(before))

		By("at rest nobody writes")
		quiet := suite.Must(canary.Cluster.AuditOffset(ctx))
		suite.Elapse(ctx, 10*time.Second)
		Expect(writes(ctx, canary, quiet)).To(BeEmpty())

		if *inspect {
			By("until Ctrl-C: KUBECONFIG=" + h.KubeconfigPath())
			<-ctx.Done()
			return
		}
		By("the add-on is undone on one spoke, which has its fields back")
		undone := time.Now()
		out, code = sno(ctx, h, "undo", last.name, "--timeout="+patience.String(), "-o", "jsonpath={.clusters[*].outcome}")
		Expect(out).To(Equal("released"))
		Expect(code).To(BeZero())
		Expect(pinned(ctx, last)).To(BeFalse())
		Expect(view()[last.name].State).To(Equal(overview.OptedOut))
		Expect(pinned(ctx, canary)).To(BeTrue())
		suite.Record(suite.Fleet, suite.Figure("kubectl sno fleet undo of one spoke, fields released first", "%s", suite.Seconds(time.Since(undone))))

		By("the removal releases every field first")
		removed := time.Now()
		addon := newObject("addon.open-cluster-management.io/v1alpha1", "ClusterManagementAddOn", "", fleet.AddOn)
		Expect(h.Client().Delete(ctx, addon)).To(Succeed())
		for _, s := range spokes {
			Eventually(ctx, func() bool { return pinned(ctx, s) }, patience, poll).Should(BeFalse())
			Eventually(ctx, func(g Gomega) {
				left := &unstructured.UnstructuredList{}
				left.SetAPIVersion("work.open-cluster-management.io/v1")
				left.SetKind("AppliedManifestWorkList")
				g.Expect(s.Cluster.Client().List(ctx, left)).To(Succeed())
				g.Expect(left.Items).To(BeEmpty())
			}, patience, poll).Should(Succeed())
		}
		Eventually(ctx, view, patience, poll).Should(HaveLen(1), "the one that has opted out")
		suite.Record(suite.Fleet, suite.Figure("Removal of the add-on from two spokes, fields released first", "%s", suite.Seconds(time.Since(removed))))
	})

// is matches the row of a cluster; one without a row has the zero state.
func is(s overview.State) types.GomegaMatcher {
	return And(HaveField("Cluster", Not(BeEmpty())), HaveField("State", s))
}

// prepare starts a hub and spokes that are single nodes with an ingress operator, and soon unknown when they are away.
func prepare(ctx context.Context, count int) (*hub.Hub, []*spoke) {
	GinkgoHelper()
	Expect(programs.BuildAll(ctx, GinkgoWriter, programs.FleetController, programs.KubectlSNO, framework.Ingress.Controller(), framework.Ingress.Host())).To(Succeed())
	h, spokes := start(ctx, count)
	for _, s := range spokes {
		s.kubelet = startKubelet(ctx, s)
		Expect(s.Prepare(ctx, framework.MachineConfig)).To(Succeed())
		apply(ctx, s.Cluster, "{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfigPool, metadata: {name: worker}, spec: {}}")
		Expect(s.RunHost(ctx, framework.Ingress)).To(Succeed())
		claim(ctx, s, configv1.SingleReplicaTopologyMode)
		patchCluster(ctx, h, s, fmt.Sprintf(`{"spec": {"leaseDurationSeconds": %d}}`, leaseSeconds))
	}
	return h, spokes
}

// sno runs kubectl sno fleet on the hub, and returns its output and exit code.
func sno(ctx context.Context, h *hub.Hub, args ...string) (string, int) {
	GinkgoHelper()
	command := exec.CommandContext(ctx, suite.Must(programs.Build(ctx, programs.KubectlSNO, GinkgoWriter)), append([]string{"fleet", "--kubeconfig=" + h.KubeconfigPath()}, args...)...)
	command.Stderr = GinkgoWriter
	out, err := command.Output()
	if ended := (*exec.ExitError)(nil); err != nil {
		Expect(errors.As(err, &ended)).To(BeTrue(), "%v", err)
	}
	GinkgoWriter.Printf("$ kubectl sno fleet %s\n%s", strings.Join(args, " "), out)
	return string(out), command.ProcessState.ExitCode()
}

// planned plans for all spokes but the last, which is opted out. The agents and the Pods write nothing but the plan.
func planned(ctx context.Context, h *hub.Hub, spokes []*spoke, config *addonv1alpha1.AddOnDeploymentConfig) {
	GinkgoHelper()
	var names []string
	before := map[*spoke]int64{}
	for _, s := range spokes {
		names, before[s] = append(names, s.name), suite.Must(s.Cluster.AuditOffset(ctx))
	}
	names = names[:len(names)-1]
	Eventually(ctx, func() []string { return decided(ctx, h, rollout.SingleNodes) }, patience, poll).Should(ConsistOf(names))
	out, code := sno(ctx, h, "plan", "--placement="+fleetNamespace+"/"+rollout.SingleNodes, "--configuration="+config.Name, "-o", "json")
	var result struct{ Groups []overview.PlanGroup }
	Expect(json.Unmarshal([]byte(out), &result)).To(Succeed())
	Expect(result.Groups).To(ConsistOf(And(HaveField("Clusters", names), HaveField("Refused", ""), HaveField("Changes", ContainElement(And(
		HaveField("Object", "ingresscontroller.operator.openshift.io/default"), HaveField("Field", HavePrefix(".spec.nodePlacement")), HaveField("Verdict", "set")))))))
	Expect(code).To(BeZero())
	for _, s := range spokes {
		Expect(beyondPlan(ctx, s, before[s])).To(BeEmpty(), s.name)
		Expect(pinned(ctx, s)).To(BeFalse())
		Eventually(ctx, func() error {
			_, err := s.Cluster.Clientset().CoreV1().Namespaces().Get(ctx, plan.Name, metav1.GetOptions{})
			return err
		}, patience, poll).Should(MatchError(apierrors.IsNotFound, "NotFound"))
	}
}

// beyondPlan returns what the agent of a spoke, or an account of ours, has written there that is no part of a plan.
func beyondPlan(ctx context.Context, s *spoke, since int64) (all []string) {
	GinkgoHelper()
	events, _, err := s.Cluster.AuditEvents(ctx, since, embedded.AuditFilter{WritesOnly: true})
	Expect(err).NotTo(HaveOccurred())
	its := 0
	for _, event := range events {
		user, object := event.User.Username, event.ObjectRef
		switch {
		case user != hub.AgentUser && !strings.HasPrefix(user, "system:serviceaccount:sno-"):
		case slices.Contains([]string{"events", "leases", "appliedmanifestworks", "subjectaccessreviews"}, object.Resource):
		case object.Namespace == plan.Name || strings.HasPrefix(object.Name, plan.Name) || strings.Contains(event.RequestURI, "dryRun=All"):
			its++
		default:
			all = append(all, user+" "+event.Verb+" "+event.RequestURI)
		}
	}
	GinkgoWriter.Printf("%s: %d writes of the plan\n", s.name, its)
	return all
}

// manage runs the manager on the hub, with the account and the rights of config/, again when it has ended by itself.
func manage(ctx context.Context, h *hub.Hub) *embedded.Component {
	GinkgoHelper()
	root := suite.Must(programs.Root(ctx))
	for _, folder := range []string{"default", "placements"} {
		Expect(framework.ApplyConfig(ctx, h.Client(), filepath.Join(root, "fleet", "config", folder), "Deployment")).To(Succeed())
	}
	return runManager(ctx, h, suite.Must(programs.Build(ctx, programs.FleetController, GinkgoWriter)))
}

func runManager(ctx context.Context, h *hub.Hub, binary string) *embedded.Component {
	GinkgoHelper()
	kubeconfig := suite.Must(h.KubeconfigForServiceAccount(ctx, fleetNamespace, "sno-fleet-controller"))
	return suite.Must(h.RunProcess(context.WithoutCancel(ctx), embedded.Process{
		Name: programs.FleetController.Name, Path: binary,
		Args:  []string{"--kubeconfig=" + kubeconfig, "--leader-elect-resource-namespace=" + fleetNamespace, "--health-probe-bind-address=0"},
		Ended: hub.Restart(ctx),
	}))
}

// configure creates the configuration with a tag of images, and with the manifests of the manager of this commit.
func configure(ctx context.Context, h *hub.Hub, tag string, modules ...string) *addonv1alpha1.AddOnDeploymentConfig {
	GinkgoHelper()
	return configureManifests(ctx, h, tag, suite.Must(agent.Hash()), modules...)
}

func configureManifests(ctx context.Context, h *hub.Hub, tag, hash string, modules ...string) *addonv1alpha1.AddOnDeploymentConfig {
	GinkgoHelper()
	c := configuration.Configuration{
		Modules: modules, DrainPolicy: "never", Placement: "topology",
		Image: "registry.example.com/{module}-controller:" + tag, Tool: "registry.example.com/kubectl-sno:" + tag, Manifests: hash,
	}.Object(fleetNamespace, "e2e")
	applyTyped(ctx, h, c)
	return c
}

func edit(ctx context.Context, h *hub.Hub, name, tag string) {
	GinkgoHelper()
	config := newObject("addon.open-cluster-management.io/v1alpha1", "AddOnDeploymentConfig", fleetNamespace, name)
	Expect(h.Client().Get(ctx, client.ObjectKeyFromObject(config), config)).To(Succeed())
	variables, _, _ := unstructured.NestedSlice(config.Object, "spec", "customizedVariables")
	for _, v := range variables {
		if its := v.(map[string]any); its["name"] == configuration.VariableImage {
			its["value"] = "registry.example.com/{module}-controller:" + tag
		}
	}
	Expect(unstructured.SetNestedSlice(config.Object, variables, "spec", "customizedVariables")).To(Succeed())
	Expect(h.Client().Update(ctx, config)).To(Succeed())
}

// rollOut gives the canaries a configuration of their own.
func rollOut(ctx context.Context, h *hub.Hub, all, canaries *addonv1alpha1.AddOnDeploymentConfig) {
	GinkgoHelper()
	applyTyped(ctx, h, rollout.AddOn(
		rollout.Group{Namespace: fleetNamespace, Placement: rollout.SingleNodes, Configuration: all.Name, Limits: limits},
		rollout.Group{Namespace: fleetNamespace, Placement: rollout.Canaries, Configuration: canaries.Name, Limits: limits},
	))
}

func applyTyped(ctx context.Context, h *hub.Hub, object any) {
	GinkgoHelper()
	u := &unstructured.Unstructured{Object: suite.Must(runtime.DefaultUnstructuredConverter.ToUnstructured(object))}
	delete(u.Object, "status")
	Expect(framework.Apply(ctx, h.Client(), u)).To(Succeed())
}

func newObject(version, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func label(ctx context.Context, h *hub.Hub, s *spoke, key string) {
	GinkgoHelper()
	patchCluster(ctx, h, s, `{"metadata": {"labels": {"`+key+`": ""}}}`)
}

func patchCluster(ctx context.Context, h *hub.Hub, s *spoke, data string) {
	GinkgoHelper()
	cluster := newObject(hub.ManagedCluster.GroupVersion().String(), hub.ManagedCluster.Kind, "", s.name)
	Expect(h.Client().Patch(ctx, cluster, client.RawPatch("application/merge-patch+json", []byte(data)))).To(Succeed())
}

// table returns what the hub knows, by cluster.
func table(ctx context.Context, h *hub.Hub) map[string]overview.Row {
	var in overview.Inputs
	in.Clusters = list[clusterv1.ManagedCluster](ctx, h, "cluster.open-cluster-management.io/v1", "ManagedClusterList")
	in.AddOns = list[addonv1alpha1.ManagedClusterAddOn](ctx, h, "addon.open-cluster-management.io/v1alpha1", "ManagedClusterAddOnList")
	in.Works = list[workv1.ManifestWork](ctx, h, "work.open-cluster-management.io/v1", "ManifestWorkList")
	rows := map[string]overview.Row{}
	for _, row := range overview.New(in) {
		rows[row.Cluster] = row
	}
	return rows
}

func list[T any](ctx context.Context, h *hub.Hub, version, kind string) (items []T) {
	GinkgoHelper()
	all := &unstructured.UnstructuredList{}
	all.SetAPIVersion(version)
	all.SetKind(kind)
	Expect(h.Client().List(ctx, all)).To(Succeed())
	for _, u := range all.Items {
		var item T
		Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &item)).To(Succeed())
		items = append(items, item)
	}
	return items
}

// progress returns how Open Cluster Management describes the rollouts.
func progress(ctx context.Context, h *hub.Hub) string {
	GinkgoHelper()
	var all []string
	for _, addon := range list[addonv1alpha1.ClusterManagementAddOn](ctx, h, "addon.open-cluster-management.io/v1alpha1", "ClusterManagementAddOnList") {
		for _, p := range addon.Status.InstallProgressions {
			for _, c := range p.Conditions {
				all = append(all, p.Name+": "+c.Message)
			}
		}
	}
	return strings.Join(all, "; ")
}

func deployment(ctx context.Context, s *spoke) *appsv1.Deployment {
	GinkgoHelper()
	return suite.Must(s.Cluster.Clientset().AppsV1().Deployments(fleetNamespace).Get(ctx, "sno-ingress-controller", metav1.GetOptions{}))
}

// pinned reports whether the router has the node placement of the ingress controller.
func pinned(ctx context.Context, s *spoke) bool {
	GinkgoHelper()
	_, found, err := unstructured.NestedMap(suite.Must(s.Object(ctx, framework.Ingress)).Object, "spec", "nodePlacement")
	Expect(err).NotTo(HaveOccurred())
	return found
}

// escalate writes what somebody could who writes as the manager does: a binding to all rights in a ManifestWork with
// the executor.
func escalate(ctx context.Context, h *hub.Hub, s *spoke) {
	GinkgoHelper()
	works := list[workv1.ManifestWork](ctx, h, "work.open-cluster-management.io/v1", "ManifestWorkList")
	i := slices.IndexFunc(works, func(w workv1.ManifestWork) bool {
		return w.Namespace == s.name && strings.HasPrefix(w.Name, "addon-sno-deploy")
	})
	Expect(i).To(BeNumerically(">=", 0))
	Expect(works[i].Spec.Executor).NotTo(BeNil())
	work := &workv1.ManifestWork{
		TypeMeta:   metav1.TypeMeta{APIVersion: workv1.GroupVersion.String(), Kind: "ManifestWork"},
		ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "escalation"},
	}
	work.Spec.Executor = works[i].Spec.Executor
	work.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion": "rbac.authorization.k8s.io/v1",
		"kind": "ClusterRoleBinding", "metadata": {"name": "sno-ingress-controller"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
		"name": "cluster-admin"}, "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "eve"}]}`)}}}
	applyTyped(ctx, h, work)
	Eventually(ctx, func() string {
		for _, w := range list[workv1.ManifestWork](ctx, h, "work.open-cluster-management.io/v1", "ManifestWorkList") {
			if w.Namespace == s.name && w.Name == "escalation" && meta.IsStatusConditionFalse(w.Status.Conditions, workv1.WorkApplied) {
				return w.Status.ResourceStatus.Manifests[0].Conditions[0].Message
			}
		}
		return ""
	}, patience, poll).Should(ContainSubstring("permission escalation"))
	Expect(h.Client().Delete(ctx, newObject("work.open-cluster-management.io/v1", "ManifestWork", s.name, "escalation"))).To(Succeed())
}
