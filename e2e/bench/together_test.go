// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	"github.com/prometheus/procfs"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/scenario"
	"github.com/solonode/sno/topology"
)

const (
	changeBound     = time.Second
	millicoresBound = 5
	stockTogether   = "five stock operators: 683 MiB, 18 millicores, 12 writes a minute"
)

var _ = It("All modules in one process follow a topology change within a second, and are idle on a large cluster", Label("together"), specTimeout, func(ctx SpecContext) {
	cluster, etcd := start(ctx, framework.Config{Scenario: "ha", Release: scenario.OldRelease})
	s := together{cluster}
	setTopology(ctx, cluster, true)
	suite.Must(s.RunAllControllers(ctx, etcd))
	s.waitSettled(ctx, true)
	s.followChanges(ctx)

	enlarge(ctx, cluster)
	process := suite.Must(s.RunAllControllers(ctx, etcd))
	s.waitSettled(ctx, true)
	s.idle(ctx, process)
})

type together struct{ *framework.ScenarioCluster }

// waitSettled waits until every module has settled, the leader election has the topology's durations, and the process
// has logged nothing for a second: its Lease exists before its controllers work again.
func (s together) waitSettled(ctx context.Context, single bool) {
	GinkgoHelper()
	mode := configv1.HighlyAvailableTopologyMode
	if single {
		mode = configv1.SingleReplicaTopologyMode
	}
	for _, module := range framework.AllModules() {
		want := "AsExpected"
		if both := module == framework.Auth || module == framework.MachineConfig; !single && !both {
			want = "NotNeeded"
		}
		suite.Must(s.WaitReason(ctx, module, waitTimeout, want))
	}
	Eventually(ctx, func(ctx context.Context) (int32, error) {
		lease := &coordinationv1.Lease{}
		err := s.Cluster.Client().Get(ctx, client.ObjectKey{Namespace: framework.SystemNamespace, Name: framework.AllLease}, lease)
		return ptr.Deref(lease.Spec.LeaseDurationSeconds, 0), err
	}).Should(Equal(int32(topology.LeaderElection(mode).LeaseDuration/time.Second)), "the duration of the Lease")
	Eventually(ctx, func() (time.Duration, error) {
		info, err := os.Stat(s.Cluster.Program(programs.KubectlSNO.Name).LogPath())
		if err != nil {
			return 0, err
		}
		return time.Since(info.ModTime()), nil
	}).Should(BeNumerically(">=", time.Second), "since the last line of the log")
}

// patched is an object that a module patches.
type patched struct {
	what            string
	list            client.ObjectList
	namespace, name string
	// single reports whether it is as on one node; nil if it must not exist there.
	single func(client.Object) bool
}

var allPatched = []patched{
	{
		what: "IngressController", list: &operatorv1.IngressControllerList{}, namespace: scenario.OperatorNamespace, name: scenario.DefaultIngressController,
		single: func(object client.Object) bool {
			ic, ok := object.(*operatorv1.IngressController)
			return ok && ic.Spec.NodePlacement != nil
		},
	},
	{
		what: "downloads Deployment, taken over and released", list: &appsv1.DeploymentList{}, namespace: scenario.ConsoleNamespace, name: "downloads",
		single: func(object client.Object) bool {
			d, ok := object.(*appsv1.Deployment)
			return ok && ptr.Deref(d.Spec.Replicas, 0) == 1
		},
	},
	{
		what: "Authentication", list: &operatorv1.AuthenticationList{}, name: scenario.ClusterName,
		single: func(object client.Object) bool {
			a, ok := object.(*operatorv1.Authentication)
			return ok && strings.Contains(string(a.Spec.UnsupportedConfigOverrides.Raw), "NonHANonProduction")
		},
	},
	{what: "quorum guard, removed and restored", list: &policyv1.PodDisruptionBudgetList{}, namespace: scenario.EtcdNamespace, name: "etcd-quorum-guard"},
	{
		what: "stock approver's configuration", list: &corev1.ConfigMapList{}, namespace: framework.StockApproverNamespace, name: "machine-approver-config",
		single: func(object client.Object) bool {
			return object.GetAnnotations()["sno.solonode.github.io/approver-edit"] != ""
		},
	},
}

// follow waits until a watch receives the object as on one node, or as on three. A poll would be too late.
func (p patched) follow(watching watch.Interface, single bool) {
	GinkgoHelper()
	for late := time.After(waitTimeout); ; {
		select {
		case event, open := <-watching.ResultChan():
			object, ok := event.Object.(client.Object)
			Expect(open && ok).To(BeTrue(), "the watch of the %s has ended", p.what)
			now := event.Type == watch.Deleted
			if p.single != nil {
				now = !now && p.single(object)
			}
			if now == single {
				return
			}
		case <-late:
			Fail("the " + p.what + " did not follow")
		}
	}
}

// followChanges measures each topology change until watches of another process have received the last of the objects.
// The host operators react to the same change, and their rollouts take most of the processors for the first second.
func (s together) followChanges(ctx context.Context) {
	GinkgoHelper()
	kube := suite.Must(client.NewWithWatch(s.Cluster.RESTConfig(), client.Options{Scheme: s.Cluster.Client().Scheme()}))
	watches := make([]watch.Interface, len(allPatched))
	for i, object := range allPatched {
		watches[i] = suite.Must(kube.Watch(ctx, object.list, &client.ListOptions{
			Namespace: object.namespace, FieldSelector: fields.OneTermEqualSelector("metadata.name", object.name),
		}))
		defer watches[i].Stop()
	}
	var last []time.Duration
	each := make([][]time.Duration, len(allPatched))
	single := true
	for range *changes {
		single = !single
		started := time.Now()
		setTopology(ctx, s.ScenarioCluster, single)
		took := make([]time.Duration, len(allPatched))
		var group sync.WaitGroup
		for i, object := range allPatched {
			group.Go(func() {
				defer GinkgoRecover()
				object.follow(watches[i], single)
				took[i] = time.Since(started)
			})
		}
		group.Wait()
		Expect(took).NotTo(ContainElement(BeZero()), "an object did not follow")
		for i := range allPatched {
			each[i] = append(each[i], took[i])
		}
		last = append(last, slices.Max(took))
		// The next change begins when all have settled.
		s.waitSettled(ctx, single)
	}
	if !single {
		setTopology(ctx, s.ScenarioCluster, true)
		s.waitSettled(ctx, true)
	}
	const what = "Topology change to everything patched, all modules in one process, while three host operators roll out on the same processors"
	rows := []suite.Row{timesRow(fmt.Sprintf("%s, %d changes", what, *changes), last, changeBound, "-")}
	for i, object := range allPatched {
		rows = append(rows, timesRow("of these, the "+object.what, each[i], 0, "-"))
	}
	suite.Require(suite.Bench, rows...)
}

// idle measures what the process writes and needs while nothing changes.
func (s together) idle(ctx context.Context, process *embedded.Component) {
	GinkgoHelper()
	suite.Elapse(ctx, *settle)
	proc := suite.Must(procfs.NewProc(process.PID()))
	before, began := suite.Must(proc.Stat()), time.Now()
	offset := suite.Must(s.Cluster.AuditOffset(ctx))
	suite.Elapse(ctx, *idleTime)
	events, _, err := s.Cluster.AuditEvents(ctx, offset, embedded.AuditFilter{User: framework.AllUser, WritesOnly: true})
	Expect(err).NotTo(HaveOccurred())
	const thousandths = 1000
	load := thousandths * (suite.Must(proc.Stat()).CPUTime() - before.CPUTime()) / time.Since(began).Seconds()
	var writes []string
	for _, event := range events {
		if event.ObjectRef == nil || event.ObjectRef.Resource != "leases" {
			writes = append(writes, event.Verb+" "+event.RequestURI)
		}
	}
	on := fmt.Sprintf("kubectl-sno run, all modules, idle, %d nodes and %d pods", *nodes, *pods)
	suite.Require(suite.Bench, suite.Row{
		What:     fmt.Sprintf("Write requests of %s at rest over %s, from the audit log", on, *idleTime),
		Measured: fmt.Sprintf("%d (and %d renewals of its Lease) %s", len(writes), len(events)-len(writes), strings.Join(writes, " ")),
		Bound:    "0", Compared: "stock console operator 6.5 a minute, ingress operator 0", Held: len(writes) == 0,
	}, memoryRow(on+": memory", process, stockTogether), suite.Row{
		What: fmt.Sprintf("%s: processor over %s", on, *idleTime), Measured: fmt.Sprintf("%.1f millicores", load),
		Bound: fmt.Sprintf("< %d millicores", millicoresBound), Compared: stockTogether, Held: load < millicoresBound,
	})
}
