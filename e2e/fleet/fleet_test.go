// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	"github.com/prometheus/procfs"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/hub"
	"github.com/solonode/sno/e2e/framework/steps"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/scenario"
)

var (
	spokes  = flag.Int("spokes", 2, "number of spokes; the last one is not selected")
	inspect = flag.Bool("inspect", false, "keep the fleet after the rollouts, until Ctrl-C or the timeout of the spec")
	away    = flag.Duration("away", 15*time.Second, "how long the hub is away")
)

func TestFleet(t *testing.T) {
	steps.Configure(t)
	suite.Run(t, "fleet", "suite SUITE=fleet")
}

var (
	//go:embed manifests.yaml
	onHub string
	//go:embed work.yaml
	inSpoke string
)

const (
	// claim is that of RHACM's agents.
	claim = "controlplanetopology.openshift.io"
	// startedTogether is how many spokes start at a time: of more, each would take longer than a cluster may.
	startedTogether = 2
	// specTimeout is for a machine that builds Open Cluster Management at the same time.
	specTimeout = NodeTimeout(20 * time.Minute)
)

// spoke is a cluster of the fleet.
type spoke struct {
	*framework.ScenarioCluster
	name    string
	agent   *embedded.Component
	kubelet *kubelet // nil if nothing runs there
}

var _ = BeforeSuite(func(ctx SpecContext) {
	Expect(programs.BuildAll(ctx, GinkgoWriter, framework.Ingress.Controller())).To(Succeed())
})

var _ = It("A hub selects single nodes by their claim, learns whether the patch is in force, and changes nothing on the others, nor while it is away",
	Label(suite.Smoke), specTimeout, func(ctx SpecContext) {
		h, fleet := start(ctx, *spokes)
		selected, other := fleet[:len(fleet)-1], fleet[len(fleet)-1]
		untouched := suite.Must(other.Cluster.AuditOffset(ctx))
		for _, s := range fleet {
			topology := configv1.SingleReplicaTopologyMode
			if s == other {
				topology = configv1.HighlyAvailableTopologyMode
			}
			apply(ctx, s.Cluster, fmt.Sprintf("{apiVersion: %s/v1alpha1, kind: ClusterClaim, metadata: {name: %s}, spec: {value: %s}}", hub.ManagedCluster.Group, claim, topology))
		}
		for manifest := range strings.SplitSeq(onHub, "\n---\n") {
			apply(ctx, h.Cluster, manifest)
		}

		By("the Placement selects by the claim")
		var names []string
		for _, s := range selected {
			names = append(names, s.name)
		}
		Eventually(ctx, func() []string { return decided(ctx, h, "single-nodes") }).Should(ConsistOf(names))
		for _, name := range names {
			apply(ctx, h.Cluster, inSpoke, name)
		}

		By("the hub learns the condition of the controller")
		for _, s := range selected {
			Eventually(ctx, feedback).WithArguments(ctx, h, s).Should(HaveField("Applied", "True"))
			suite.Must(s.RunController(ctx, framework.Ingress))
			Eventually(ctx, feedback).WithArguments(ctx, h, s).Should(HaveField("InForce", "True"))
			agents, _, err := s.Cluster.AuditEvents(ctx, 0, embedded.AuditFilter{User: hub.AgentUser, Group: operatorv1.GroupName, WritesOnly: true})
			Expect(err).NotTo(HaveOccurred())
			Expect(agents).To(BeEmpty(), "the agent only reads")
		}

		By("nothing happens on a spoke while the hub is away")
		first := selected[0]
		quiet := suite.Must(first.Cluster.AuditOffset(ctx))
		agent, object := first.agent.PID(), version(ctx, first)
		Expect(h.KillAPIServer()).To(Succeed())
		suite.Elapse(ctx, *away)
		Expect(first.agent.PID()).To(Equal(agent), "the agent has restarted")
		Expect(version(ctx, first)).To(Equal(object))
		Expect(writes(ctx, first, quiet)).To(BeEmpty())

		By("the hub learns after its return what a person did meanwhile")
		live := suite.Must(first.Object(ctx, framework.Ingress))
		live.SetAnnotations(map[string]string{patch.OptOutAnnotation: "all"})
		Expect(first.Cluster.Client().Update(ctx, live)).To(Succeed())
		suite.Must(first.WaitReason(ctx, framework.Ingress, steps.Timeout, "OptedOut"))
		Expect(h.StartAPIServer(ctx)).To(Succeed())
		Eventually(ctx, feedback).WithArguments(ctx, h, first).Should(And(HaveField("InForce", "False"), HaveField("Reason", "OptedOut")))

		By("a spoke that is not selected has got nothing")
		Expect(writes(ctx, other, untouched)).To(BeEmpty())
	})

// start starts a hub and its spokes, single nodes without controllers, which have joined.
func start(ctx context.Context, count int) (*hub.Hub, []*spoke) {
	GinkgoHelper()
	began := time.Now()
	outliving, started := steps.Outliving(ctx)
	config := embedded.Config{Keep: suite.Keep(), Progress: GinkgoWriter}
	h, err := hub.Start(outliving, config)
	Expect(err).NotTo(HaveOccurred())
	steps.UntilEnd(h.Cluster, func() { _ = h.Stop() }, "hub")
	config.Light = true
	single := suite.Must(scenario.Lookup("none-sno"))
	fleet := make([]*spoke, count)
	group, groupCtx := errgroup.WithContext(outliving)
	group.SetLimit(startedTogether)
	for i := range fleet {
		group.Go(func() error {
			c, err := embedded.Start(outliving, config)
			if err != nil {
				return err
			}
			s := &spoke{ScenarioCluster: framework.Attach(c, single, GinkgoWriter), name: fmt.Sprintf("spoke%d", i+1)}
			fleet[i] = s
			if err := single.InstallObjects(groupCtx, c); err != nil {
				return err
			}
			s.agent, err = h.Join(groupCtx, s.name, c)
			return err
		})
	}
	err = group.Wait()
	for _, s := range fleet {
		if s != nil {
			steps.UntilEnd(s.Cluster, s.Stop, s.name)
		}
	}
	started()
	Expect(err).NotTo(HaveOccurred())
	suite.Record(suite.Fleet,
		suite.Figure(fmt.Sprintf("A hub and %d spokes, from the start until all have joined", count), "%s", suite.Seconds(time.Since(began))),
		memory("A hub", h.Cluster, "registration", "placement", "addon"),
		memory("A spoke with its agent", fleet[0].Cluster, "registration-operator"),
	)
	return h, fleet
}

// memory returns the memory of a light cluster and of programs with it.
func memory(what string, c *embedded.Cluster, names ...string) suite.Row {
	GinkgoHelper()
	var resident, anonymous uint64
	add := func(pid int) {
		used := suite.Must(suite.Must(procfs.NewProc(pid)).NewStatus())
		resident, anonymous = resident+used.VmRSS/mebi, anonymous+used.RssAnon/mebi
	}
	for _, name := range []string{embedded.Etcd, embedded.APIServer, embedded.ControllerManager} {
		add(c.Component(name).PID())
	}
	for _, name := range names {
		add(c.Program(name).PID())
	}
	return suite.Figure(what+", memory after the start", "RSS %d MiB (anonymous %d)", resident, anonymous)
}

// apply applies a manifest, in a namespace if one is given.
func apply(ctx context.Context, c *embedded.Cluster, manifest string, namespace ...string) {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(manifest), &object.Object)).To(Succeed())
	if len(namespace) > 0 {
		object.SetNamespace(namespace[0])
	}
	Expect(framework.Apply(ctx, c.Client(), object)).To(Succeed())
}

// decided returns the clusters that a Placement has selected.
func decided(ctx context.Context, h *hub.Hub, placement string) (names []string) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(hub.ManagedCluster.GroupKind().WithVersion("v1beta1").GroupVersion().WithKind("PlacementDecisionList"))
	if err := h.Client().List(ctx, list, client.MatchingLabels{"cluster.open-cluster-management.io/placement": placement}); err != nil {
		return nil
	}
	for _, item := range list.Items {
		decisions, _, _ := unstructured.NestedSlice(item.Object, "status", "decisions")
		for _, decision := range decisions {
			names = append(names, decision.(map[string]any)["clusterName"].(string))
		}
	}
	return names
}

// report is what the hub knows of a spoke.
type report struct{ Applied, InForce, Reason string }

// feedback returns the report of a spoke's ManifestWork.
func feedback(ctx context.Context, h *hub.Hub, s *spoke) (found report, err error) {
	work := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(inSpoke), &work.Object); err != nil {
		return found, err
	}
	if err := h.Client().Get(ctx, client.ObjectKey{Namespace: s.name, Name: work.GetName()}, work); err != nil {
		return found, err
	}
	var status struct {
		Status struct {
			Conditions     []metav1.Condition
			ResourceStatus struct {
				Manifests []struct {
					StatusFeedback struct {
						Values []struct {
							Name       string
							FieldValue struct{ String string }
						}
					}
				}
			}
		}
	}
	text, err := work.MarshalJSON()
	if err != nil {
		return found, err
	}
	if err := yaml.Unmarshal(text, &status); err != nil {
		return found, err
	}
	if i := slices.IndexFunc(status.Status.Conditions, func(c metav1.Condition) bool { return c.Type == "Applied" }); i >= 0 {
		found.Applied = string(status.Status.Conditions[i].Status)
	}
	for _, manifest := range status.Status.ResourceStatus.Manifests {
		for _, value := range manifest.StatusFeedback.Values {
			switch value.Name {
			case "inForce":
				found.InForce = value.FieldValue.String
			case "reason":
				found.Reason = value.FieldValue.String
			}
		}
	}
	return found, nil
}

// version returns the resourceVersion of the IngressController.
func version(ctx context.Context, s *spoke) string {
	GinkgoHelper()
	return suite.Must(s.Object(ctx, framework.Ingress)).GetResourceVersion()
}

// writes returns what the agent of a spoke or one of our controllers has written there since an offset, but for what an
// agent writes without any ManifestWork.
func writes(ctx context.Context, s *spoke, since int64) (all []string) {
	GinkgoHelper()
	events, _, err := s.Cluster.AuditEvents(ctx, since, embedded.AuditFilter{WritesOnly: true})
	Expect(err).NotTo(HaveOccurred())
	for _, event := range events {
		if (event.User.Username == hub.AgentUser || strings.HasPrefix(event.User.Username, "system:serviceaccount:"+framework.SystemNamespace+":")) &&
			!slices.Contains([]string{"events", "leases"}, event.ObjectRef.Resource) {
			all = append(all, event.User.Username+" "+event.Verb+" "+event.RequestURI)
		}
	}
	return all
}
