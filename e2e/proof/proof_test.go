// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/fakes/versionoperator"
	"github.com/solonode/sno/testcluster/operand"
	"github.com/solonode/sno/testcluster/scenario"
)

const (
	// testLimit limits a test on one cluster, which takes less than a minute on an idle machine.
	testLimit = 8 * time.Minute
	poll      = 50 * time.Millisecond
	// restTime is how long no user may write before a cluster counts as idle.
	restTime = 4 * time.Second
)

// TestMain runs four clusters in parallel on few processors too: they mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	logf.SetLogger(logr.Discard())
	// Every write of a Deployment that selects the master role would cause a warning.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	os.Exit(m.Run())
}

type proof struct {
	*framework.ScenarioCluster
	t       *testing.T
	ctx     context.Context //nolint:containedctx // of the test
	config  framework.Config
	running map[framework.Module]*embedded.Component
	reasons map[framework.Module]string
	rolls   int
}

func start(t *testing.T, config framework.Config) *proof {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	t.Cleanup(cancel)
	s, err := framework.Start(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	p := &proof{ScenarioCluster: s, t: t, ctx: ctx, config: config, running: map[framework.Module]*embedded.Component{}}
	t.Cleanup(func() {
		for module := range config.Hosts {
			if t.Failed() {
				t.Logf("the log of %s ends with:\n%s", module.Host().Name, p.Cluster.Program(module.Host().Name).LogTail(logTail))
			}
		}
	})
	return p
}

const logTail = 2000

func (p *proof) controllers(args []string, reasons map[framework.Module]string) {
	p.t.Helper()
	for module := range reasons {
		controller, err := p.RunController(p.ctx, module, args...)
		if err != nil {
			p.t.Fatal(err)
		}
		p.running[module] = controller
	}
	p.expect(reasons)
}

// expect waits until the conditions have these reasons. A bar separates alternatives.
func (p *proof) expect(reasons map[framework.Module]string) {
	p.t.Helper()
	p.reasons = reasons
	for module, reason := range reasons {
		if _, err := p.WaitReason(p.ctx, module, operand.WaitTimeout, strings.Split(reason, "|")...); err != nil {
			p.t.Fatalf("%v\n%s", err, p.running[module].LogTail(logTail))
		}
	}
}

func (p *proof) settled(want []scenario.Operand) {
	p.t.Helper()
	if err := operand.WaitSettled(p.ctx, p.Cluster.Client(), want); err != nil {
		p.t.Fatalf("%s: %v", p.Scenario.Name, err)
	}
}

func (p *proof) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatalf("%s: %v", p.Scenario.Name, err)
	}
}

// disturb rolls all Deployments, drains one node after the other, and restarts one after the other. Each time
// everything must return to its place.
func (p *proof) disturb(want []scenario.Operand) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	watcher, err := operand.Watch(ctx, p.Cluster, want)
	p.must(err)
	p.settled(want)
	before := p.pods(want)

	p.roll(watcher, want)
	p.replaced("a rollout", before, want)

	before = p.pods(want)
	for _, node := range p.nodes() {
		p.must(operand.Drain(ctx, p.Cluster, node))
		p.must(operand.Uncordon(ctx, p.Cluster, node))
		p.settled(want)
	}
	p.replaced("a drain of every node", before, want)

	before = p.pods(want)
	for _, node := range p.nodes() {
		p.must(operand.Restart(ctx, p.Cluster, node))
		p.settled(want)
	}
	p.replaced("a restart of every node", before, want)
	p.must(watcher.TwoWriters())
}

func (p *proof) roll(watcher *operand.Watcher, want []scenario.Operand) {
	p.t.Helper()
	p.must(watcher.Mark(p.ctx, p.Cluster.Client()))
	p.rolls++
	p.must(p.Roll(p.ctx, want, strconv.Itoa(p.rolls)))
	p.must(watcher.Available())
}

func (p *proof) pods(want []scenario.Operand) map[types.UID]string {
	p.t.Helper()
	pods, err := operand.Pods(p.ctx, p.Cluster.Client(), want)
	p.must(err)
	return pods
}

// replaced checks that no former pod is left. Otherwise the disruption had no effect.
func (p *proof) replaced(by string, before map[types.UID]string, want []scenario.Operand) {
	p.t.Helper()
	for uid, name := range p.pods(want) {
		if _, ok := before[uid]; ok {
			p.t.Errorf("%s: %s was not replaced by %s", p.Scenario.Name, name, by)
		}
	}
}

func (p *proof) nodes() []string {
	p.t.Helper()
	var list corev1.NodeList
	p.must(p.Cluster.Client().List(p.ctx, &list))
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// users returns the users that must not write on an idle cluster.
func (p *proof) users() []string {
	users := []string{versionoperator.User}
	for module := range p.running {
		users = append(users, module.User())
	}
	for module := range p.config.Hosts {
		users = append(users, module.HostUser())
	}
	return users
}

// quiet waits until no user has written for restTime, except Leases. Controllers that overwrite each other would never
// stop.
func (p *proof) quiet() {
	p.t.Helper()
	p.expect(p.reasons)
	offset, err := p.Cluster.AuditOffset(p.ctx)
	p.must(err)
	since, last := time.Now(), []string{}
	err = wait.PollUntilContextTimeout(p.ctx, poll, operand.WaitTimeout, true, func(context.Context) (bool, error) {
		events, next, err := p.Cluster.AuditEvents(p.ctx, offset, embedded.AuditFilter{WritesOnly: true})
		if err != nil {
			return false, err
		}
		offset = next
		for _, event := range events {
			if slices.Contains(p.users(), event.User.Username) && (event.ObjectRef == nil || event.ObjectRef.Resource != "leases") {
				since = time.Now()
				last = append(last, strings.Join([]string{event.User.Username, event.Verb, event.RequestURI}, " "))
			}
		}
		return time.Since(since) >= restTime, nil
	})
	if err != nil {
		p.t.Fatalf("%s: it never becomes idle: %v; the last writes are:\n%s", p.Scenario.Name, err, strings.Join(last[max(0, len(last)-20):], "\n"))
	}
	p.t.Logf("%s: idle after %d more writes", p.Scenario.Name, len(last))
}

func (p *proof) addMasters() {
	p.t.Helper()
	master := p.Scenario.Nodes()[0]
	for _, name := range []string{"master-1", "master-2"} {
		master.Name = name
		p.must(p.Cluster.AddNode(p.ctx, master))
	}
}
