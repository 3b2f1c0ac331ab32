// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2" //nolint:staticcheck // a dot import, as in specs
	. "github.com/onsi/gomega"    //nolint:staticcheck // the same
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/embeddedtarget"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/fakes/versionoperator"
	"github.com/solonode/sno/testcluster/operand"
	"github.com/solonode/sno/testcluster/scenario"
)

const (
	// Timeout is for one change by operators on a busy machine.
	Timeout = operand.WaitTimeout
	poll    = 50 * time.Millisecond
	// restTime is how long no user may write before a cluster counts as idle.
	restTime = 4 * time.Second
	logTail  = 2000
)

// Configure makes Eventually wait for changes by operators, and the root of the repository the working folder, to which
// paths in flags are relative. Suites call it before they run.
func Configure(t *testing.T) {
	t.Helper()
	root, err := programs.Root(t.Context())
	if err == nil {
		err = os.Chdir(root)
	}
	if err != nil {
		t.Fatal(err)
	}
	SetDefaultEventuallyTimeout(Timeout)
	SetDefaultEventuallyPollingInterval(poll)
	EnforceDefaultTimeoutsWhenUsingContexts()
}

// Cluster is the cluster of a spec.
type Cluster struct {
	*framework.ScenarioCluster
	Ctx  context.Context //nolint:containedctx // of the spec
	Kube client.Client
	// Running are the controllers that were started last.
	Running map[framework.Module]*embedded.Component

	hosts   map[framework.Module][]string
	reasons map[framework.Module]string
	rolls   int
}

// Start starts a cluster until the end of the spec.
func Start(ctx context.Context, config framework.Config) *Cluster {
	GinkgoHelper()
	if config.Keep = suite.Keep(); config.Progress == nil {
		config.Progress = GinkgoWriter
	}
	outliving, started := Outliving(ctx)
	s, err := framework.Start(outliving, config)
	started()
	Expect(err).NotTo(HaveOccurred())
	UntilEnd(s.Cluster, s.Stop)
	return &Cluster{
		ScenarioCluster: s, Ctx: ctx, Kube: s.Cluster.Client(), hosts: config.Hosts, Running: map[framework.Module]*embedded.Component{},
	}
}

// StartSystem starts a cluster for the conformance suite until the end of the spec.
func StartSystem(ctx context.Context, o embeddedtarget.Options) *embeddedtarget.System {
	GinkgoHelper()
	o.Keep, o.Progress = suite.Keep(), GinkgoWriter
	outliving, started := Outliving(ctx)
	s, err := embeddedtarget.Start(outliving, o)
	started()
	Expect(err).NotTo(HaveOccurred())
	UntilEnd(s.Cluster, s.Stop)
	return s
}

// Outliving returns a context for a cluster that stays when the node of the spec has ended, so that its logs can be
// copied then. Until started is called it also ends with ctx.
func Outliving(ctx context.Context) (outliving context.Context, started func() bool) {
	outliving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	return outliving, context.AfterFunc(ctx, cancel)
}

// UntilEnd stops a cluster at the end of the spec, and collects what a person needs if the spec has failed: in a folder
// for each cluster, if it has several.
func UntilEnd(c *embedded.Cluster, stop func(), folder ...string) {
	DeferCleanup(func(ctx context.Context) {
		if CurrentSpecReport().Failed() {
			collect(ctx, c, filepath.Join(append([]string{suite.Artifacts()}, folder...)...))
		}
		stop()
	})
}

// Run starts or restarts a module's controller.
func (c *Cluster) Run(module framework.Module, args ...string) *embedded.Component {
	GinkgoHelper()
	controller := suite.Must(c.RunController(c.Ctx, module, args...))
	c.Running[module] = controller
	return controller
}

// RunAll starts or restarts controllers with the same arguments, and waits until they have these reasons.
func (c *Cluster) RunAll(reasons map[framework.Module]string, args ...string) {
	GinkgoHelper()
	for module := range reasons {
		c.Run(module, args...)
	}
	c.Expect(reasons)
}

// Expect waits until the conditions have these reasons. A bar separates alternatives.
func (c *Cluster) Expect(reasons map[framework.Module]string) {
	GinkgoHelper()
	c.reasons = reasons
	for module, reason := range reasons {
		_, err := c.WaitReason(c.Ctx, module, Timeout, strings.Split(reason, "|")...)
		Expect(err).NotTo(HaveOccurred(), func() string { return c.Running[module].LogTail(logTail) })
	}
}

// Settled waits until operands have the number of pods and the places that they should have.
func (c *Cluster) Settled(want []scenario.Operand) {
	GinkgoHelper()
	Expect(operand.WaitSettled(c.Ctx, c.Kube, want)).To(Succeed())
}

// Disturb rolls all operands, drains one node after the other, and restarts one after the other. Each time everything
// must return to its place.
func (c *Cluster) Disturb(want []scenario.Operand) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(c.Ctx)
	defer cancel()
	watcher := suite.Must(operand.Watch(ctx, c.Cluster, want))
	c.Settled(want)
	c.replaced("a rollout", want, func() {
		Expect(watcher.Mark(ctx, c.Kube)).To(Succeed())
		c.rolls++
		Expect(c.Roll(ctx, want, strconv.Itoa(c.rolls))).To(Succeed())
		Expect(watcher.Available()).To(Succeed())
	})
	c.replaced("a drain of every node", want, func() {
		for _, node := range c.Nodes() {
			c.Drain(node)
			c.Settled(want)
		}
	})
	c.replaced("a restart of every node", want, func() {
		for _, node := range c.Nodes() {
			Expect(operand.Restart(ctx, c.Cluster, node)).To(Succeed())
			c.Settled(want)
		}
	})
	Expect(watcher.TwoWriters()).To(Succeed())
}

// replaced checks that no former pod is left after an act. Otherwise the act had no effect.
func (c *Cluster) replaced(by string, want []scenario.Operand, act func()) {
	GinkgoHelper()
	pods := func() map[types.UID]string {
		pods := suite.Must(operand.Pods(c.Ctx, c.Kube, want))
		return pods
	}
	before := pods()
	act()
	for uid, name := range pods() {
		Expect(before).NotTo(HaveKey(uid), "%s was not replaced by %s", name, by)
	}
}

// Drain drains a node and uncordons it.
func (c *Cluster) Drain(node string) {
	GinkgoHelper()
	Expect(operand.Drain(c.Ctx, c.Cluster, node)).To(Succeed())
	Expect(operand.Uncordon(c.Ctx, c.Cluster, node)).To(Succeed())
}

// Nodes returns the names of all nodes, sorted.
func (c *Cluster) Nodes() []string {
	GinkgoHelper()
	var list corev1.NodeList
	Expect(c.Kube.List(c.Ctx, &list)).To(Succeed())
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names
}

// AddMasters adds control-plane nodes like the first one.
func (c *Cluster) AddMasters(names ...string) {
	GinkgoHelper()
	master := c.Scenario.Nodes()[0]
	for _, name := range names {
		master.Name = name
		Expect(c.Cluster.AddNodes(c.Ctx, master)).To(Succeed())
	}
}

// Quiet waits until the controllers have their reasons, and they, the host operators and the stand-in of the
// cluster-version-operator have written nothing but Leases for some time. Clients that overwrite each other never stop.
func (c *Cluster) Quiet() {
	GinkgoHelper()
	c.Expect(c.reasons)
	users := []string{versionoperator.User}
	for module := range c.Running {
		users = append(users, module.User())
	}
	for module := range c.hosts {
		users = append(users, module.HostUser())
	}
	offset := suite.Must(c.Cluster.AuditOffset(c.Ctx))
	since, last := time.Now(), []string{}
	Eventually(c.Ctx, func(g Gomega) time.Duration {
		events, next, err := c.Cluster.AuditEvents(c.Ctx, offset, embedded.AuditFilter{WritesOnly: true})
		g.Expect(err).NotTo(HaveOccurred())
		offset = next
		for _, event := range events {
			if slices.Contains(users, event.User.Username) && (event.ObjectRef == nil || event.ObjectRef.Resource != "leases") {
				since = time.Now()
				last = append(last, strings.Join([]string{event.User.Username, event.Verb, event.RequestURI}, " "))
			}
		}
		return time.Since(since)
	}).Should(BeNumerically(">=", restTime), func() string {
		return "it never becomes idle; the last writes are:\n" + strings.Join(last[max(0, len(last)-20):], "\n")
	})
	GinkgoWriter.Printf("Idle after %d more writes\n", len(last))
}
