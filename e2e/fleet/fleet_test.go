// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	"github.com/prometheus/procfs"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/hub"
	"github.com/solonode/sno/e2e/framework/steps"
	"github.com/solonode/sno/e2e/framework/suite"
	snofleet "github.com/solonode/sno/fleet"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/scenario"
)

var (
	spokes  = flag.Int("spokes", 2, "number of spokes; the last one is not selected at first")
	inspect = flag.Bool("inspect", false, "keep the fleet after the rollouts, until Ctrl-C or the timeout of the spec")
	away    = flag.Duration("away", 15*time.Second, "how long the hub is away")
)

func TestFleet(t *testing.T) {
	steps.Configure(t)
	suite.Run(t, "fleet", "suite SUITE=fleet")
}

const (
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
	kubelet *kubelet
}

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

// apply applies a manifest.
func apply(ctx context.Context, c *embedded.Cluster, manifest string) {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(manifest), &object.Object)).To(Succeed())
	Expect(framework.Apply(ctx, c.Client(), object)).To(Succeed())
}

// claim publishes the topology of a spoke, as RHACM's agents do.
func claim(ctx context.Context, s *spoke, topology configv1.TopologyMode) {
	GinkgoHelper()
	apply(ctx, s.Cluster, fmt.Sprintf("{apiVersion: %s/v1alpha1, kind: ClusterClaim, metadata: {name: %s}, spec: {value: %s}}",
		hub.ManagedCluster.Group, snofleet.ClaimControlPlane, topology))
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
