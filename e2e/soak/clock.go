// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2/textlogger"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/harness"
	ingress "github.com/solonode/sno/ingress/controller"
	"github.com/solonode/sno/machineconfig"
	machineconfigcontroller "github.com/solonode/sno/machineconfig/controller"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/run"
	"github.com/solonode/sno/testcluster/scenario"
)

// Jumps are the figures of the clock that jumps.
type Jumps struct {
	Jumps int
	// Requests are the writes of the controllers without Leases, and Writes those that changed something.
	Requests, Writes int
}

// Clock is a clock that can be set.
type Clock struct{ ahead atomic.Int64 }

var _ clock.PassiveClock = &Clock{}

// Now returns the time.
func (c *Clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Since returns the time since another.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Jump sets the clock forward or back.
func (c *Clock) Jump(by time.Duration) { c.ahead.Add(int64(by)) }

const (
	jump = time.Hour
	// step is the longest time that counts between two reconciliations: it is no jump.
	step = time.Minute
)

var (
	shutdownFile   = Object{Group: mcfgv1.GroupName, Resource: "machineconfigs", Name: machineconfig.ShutdownMachineConfigName}
	shutdownConfig = Object{Group: mcfgv1.GroupName, Resource: "kubeletconfigs", Name: machineconfig.ShutdownName}
)

// Premature returns the writes to objects, all of which restart a node, before a moment.
func Premature(writes []Write, earliest time.Time, objects ...Object) []Violation {
	var found []Violation
	for _, w := range writes {
		if slices.Contains(objects, w.Object) && ours(w) && w.accepted() && w.Received.Before(earliest) {
			found = append(found, Violation{InvariantPremature, fmt.Sprintf("%s, want it after %s", w, earliest.UTC().Format("15:04:05.000"))})
		}
	}
	return found
}

// Retried compares the number of effective patches of an object with the number that its back-off permits.
func Retried(writes []Write, object Object, want int) []Violation {
	n := 0
	for _, w := range writes {
		if w.Object == object && ours(w) && w.Effective && w.Subresource == "" {
			n++
		}
	}
	if n == want {
		return nil
	}
	return []Violation{{InvariantBackoff, fmt.Sprintf("%s was patched %d times, want %d", object, n, want)}}
}

// jumping is the clock run: controllers in this process, whose clock is this one.
type jumping struct {
	*environment
	clock   *Clock
	process *process
	ended   chan error
	beat    int
	figures *Jumps
}

// clockJumps runs controllers with a clock that jumps an hour forward and back while a patch is withheld and a restart
// of the node settles. A cluster with the kinds of a machine-config operator is what remains.
func (e *environment) clockJumps(ctx context.Context) (*Jumps, error) {
	j := &jumping{environment: e, clock: &Clock{}, figures: &Jumps{}, ended: make(chan error, 1)}
	if err := j.prepare(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := j.start(ctx); err != nil {
		return nil, err
	}
	err := j.prove(ctx)
	cancel()
	j.process.Stop()
	select {
	case ended := <-j.ended:
		return j.figures, errors.Join(err, ended)
	case <-time.After(settleTimeout):
		return j.figures, errors.Join(err, fmt.Errorf("%w: the controllers do not end", errFault))
	}
}

// prepare has one node, and the objects of a machine-config operator that has nothing to do.
func (j *jumping) prepare(ctx context.Context) error {
	for module := range j.optedOut {
		if err := j.optOut(module).make(ctx); err != nil {
			return err
		}
	}
	j.single = true
	if err := j.SetTopology(ctx, configv1.SingleReplicaTopologyMode, configv1.SingleReplicaTopologyMode); err != nil {
		return err
	}
	const manifests = "machineconfiguration/v1/zz_generated.crd-manifests/0000_80_machine-config_01_"
	if err := j.Cluster.InstallCRDs(ctx, []string{
		manifests + "controllerconfigs-Default.crd.yaml", manifests + "kubeletconfigs.crd.yaml", manifests + "machineconfigs.crd.yaml",
	}, nil); err != nil {
		return err
	}
	done := []any{}
	for kind, status := range map[string]string{"Updated": "True", "Updating": "False", "Degraded": "False"} {
		done = append(done, map[string]any{"type": kind, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "", "message": ""})
	}
	pool := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{machineconfig.MasterPoolLabel: ""}},
		"spec":     map[string]any{"machineConfigSelector": map[string]any{}, "nodeSelector": map[string]any{}, "paused": false},
		"status":   map[string]any{"conditions": done},
	}
	stock := map[string]any{"spec": map[string]any{
		"additionalTrustBundle": nil, "baseOSContainerImage": "", "cloudProviderCAData": nil, "cloudProviderConfig": "", "clusterDNSIP": "",
		"dns": nil, "images": map[string]any{}, "infra": nil, "ipFamilies": "IPv4", "kubeAPIServerServingCAData": "Kg==", "network": nil,
		"proxy": nil, "releaseImage": "", "rootCAData": "Kg==",
	}}
	for _, each := range []struct {
		kind, name string
		body       map[string]any
	}{{"MachineConfigPool", machineconfig.MasterPool, pool}, {"ControllerConfig", "machine-config-controller", stock}} {
		u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(each.body)}
		u.SetGroupVersionKind(mcfgv1.GroupVersion.WithKind(each.kind))
		u.SetName(each.name)
		status := u.Object["status"]
		if err := j.Cluster.Client().Create(ctx, u); err != nil {
			return fmt.Errorf("create %s: %w", each.kind, err)
		}
		if status == nil {
			continue
		}
		u.Object["status"] = status
		if err := j.Cluster.Client().Status().Update(ctx, u); err != nil {
			return fmt.Errorf("write the status of %s: %w", each.kind, err)
		}
	}
	return j.longGracePeriods(ctx)
}

// longGracePeriods runs pods with long grace periods on a control-plane node, so that no other pod changes the decision
// about the shutdown.
func (j *jumping) longGracePeriods(ctx context.Context) error {
	nodes, err := j.Cluster.Clientset().CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: scenario.MasterTaint})
	if err != nil || len(nodes.Items) == 0 {
		return errors.Join(fmt.Errorf("%w: there is no control-plane node", errFault), err)
	}
	for name, class := range map[string]string{"slow": "", "slow-critical": "system-cluster-critical"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: workload, Name: name}, Spec: corev1.PodSpec{
			NodeName: nodes.Items[0].Name, PriorityClassName: class, TerminationGracePeriodSeconds: ptr.To(int64(jump / time.Second)),
			Containers: []corev1.Container{{Name: "main", Image: "none"}},
		}}
		if err := j.Cluster.Client().Create(ctx, pod); err != nil {
			return fmt.Errorf("create a pod with a long grace period: %w", err)
		}
	}
	return nil
}

// start runs the controllers of the modules that wait for minutes, with the rights of all.
func (j *jumping) start(ctx context.Context) error {
	const name = "in-process"
	proxy, err := StartProxy(name, j.Cluster.RESTConfig())
	if err != nil {
		return err
	}
	kubeconfig, err := j.Cluster.KubeconfigForServiceAccount(ctx, harness.SystemNamespace, harness.AllAccount)
	if err == nil {
		kubeconfig, err = proxy.Kubeconfig(kubeconfig)
	}
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read %s: %w", kubeconfig, err)
	}
	modules := []controller.Module{&ingress.Module{}, &machineconfigcontroller.Module{}}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	options := run.Options{Clock: j.clock}
	options.BindFlags(flags)
	for _, m := range modules {
		m.BindFlags(flags)
	}
	if err := flags.Parse([]string{
		"--graceful-shutdown=on", "--leader-elect-resource-namespace=" + harness.SystemNamespace, "--metrics-bind-address=0", "--health-probe-bind-address=0",
	}); err != nil {
		return fmt.Errorf("prepare the controllers: %w", err)
	}
	output, err := os.Create(filepath.Join(j.Cluster.Dir(), name+".log"))
	if err != nil {
		return fmt.Errorf("make the log: %w", err)
	}
	j.process = &process{Proxy: proxy, name: name, lease: harness.AllLease, mark: proxy.NextRun()}
	if err := j.releaseLease(ctx, harness.AllLease); err != nil {
		return err
	}
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(output)))
	go func() {
		// The name is that of kubectl-sno, whose rights are for its Lease.
		err := run.Run(logr.NewContext(ctx, logger), config, "kubectl-sno", options, modules...)
		j.ended <- errors.Join(err, output.Close())
	}()
	if _, err := j.WaitReason(ctx, harness.MachineConfig, settleTimeout, machineconfig.ReasonSettling); err != nil {
		return err
	}
	_, err = j.WaitReason(ctx, harness.Ingress, settleTimeout, "AsExpected")
	return err
}

// touch has all controllers reconcile, and waits until they request nothing.
func (j *jumping) touch(ctx context.Context) error {
	j.beat++
	live := &configv1.Infrastructure{}
	live.Name = scenario.ClusterName
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/beat":"%d"}}}`, j.beat)
	if err := j.Cluster.Client().Patch(ctx, live, client.RawPatch("application/merge-patch+json", body)); err != nil {
		return fmt.Errorf("touch the Infrastructure: %w", err)
	}
	return j.idle(ctx)
}

// idle waits until the controllers have requested nothing for a while.
func (j *jumping) idle(ctx context.Context) error {
	if err := pauseFor(ctx, quietTime); err != nil {
		return err
	}
	for j.process.Quiet() < quietTime {
		if err := pauseFor(ctx, poll); err != nil {
			return err
		}
	}
	return nil
}

func (j *jumping) jump(ctx context.Context, by time.Duration) error {
	j.clock.Jump(by)
	j.figures.Jumps++
	return j.touch(ctx)
}

// revert removes the patch of the router, as another client.
func (j *jumping) revert(ctx context.Context) error {
	if err := j.merge(ctx, ingressObject, "another-client", map[string]any{"spec": map[string]any{"nodePlacement": nil, "replicas": nil}}); err != nil {
		return err
	}
	if _, err := j.WaitReason(ctx, harness.Ingress, settleTimeout, "Reverted"); err != nil {
		return err
	}
	return j.idle(ctx)
}

func (j *jumping) prove(ctx context.Context) error {
	began := time.Now()
	if _, err := j.writes(ctx); err != nil {
		return err
	}
	_, holder, err := j.identity(ctx, j.process)
	if err != nil {
		return err
	}
	type stage struct {
		what    string
		do      func(context.Context) error
		patches int // of the router
	}
	by := func(d time.Duration) func(context.Context) error {
		return func(ctx context.Context) error { return j.jump(ctx, d) }
	}
	passed := time.Duration(0)
	pass := func(n int) func(context.Context) error {
		return func(ctx context.Context) error {
			for range n {
				j.clock.Jump(step)
				passed += step
				if err := j.touch(ctx); err != nil {
					return err
				}
			}
			return nil
		}
	}
	var all, late []Write
	var found []Violation
	for _, s := range []stage{
		{"a jump forward", by(jump), 0},
		{"a jump back", by(-jump), 0},
		{"a revert", j.revert, 0},
		{"a jump forward with a patch that is withheld", by(jump), 1},
		{"another revert", j.revert, 0},
		{"a jump back with a patch that is withheld", by(-jump), 0},
		{"six minutes", pass(6), 0},
	} {
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("after %s: %w", s.what, err)
		}
		writes, err := j.writes(ctx)
		if err != nil {
			return err
		}
		all = append(all, writes...)
		for _, v := range Retried(writes, ingressObject.Object, s.patches) {
			found = append(found, Violation{v.Invariant, s.what + ": " + v.Text})
		}
	}
	// Each of the two jumps forward counts for a minute.
	if stable := passed + 2*step + time.Since(began); stable < machineconfig.ShutdownDebounce {
		found = append(found, Premature(all, time.Now(), shutdownFile, shutdownConfig)...)
	} else {
		j.logf("            the machine is too slow to find premature writes: the decision has been stable for %s", stable)
	}
	if err := pass(6)(ctx); err != nil {
		return err
	}
	if late, err = j.writes(ctx); err != nil {
		return err
	}
	all = append(all, late...)
	found = append(found, Retried(late, ingressObject.Object, 1)...)
	for _, o := range []Object{shutdownFile, shutdownConfig} {
		found = append(found, Retried(all, o, 1)...)
	}
	_, still, err := j.identity(ctx, j.process)
	if err != nil {
		return err
	}
	found = append(found, SameHolder(holder, still)...)
	found = append(found, Needless(all, ours)...)
	for _, w := range all {
		if ours(w) && w.Object.Resource != "leases" {
			j.figures.Requests++
			if w.Effective && !isReport(w) {
				j.figures.Writes++
			}
		}
	}
	if j.figures.Requests > mostWithJumps {
		found = append(found, Violation{InvariantRequests, fmt.Sprintf("%d writes, want at most %d", j.figures.Requests, mostWithJumps)})
	}
	select {
	case err := <-j.ended:
		j.ended <- err
		found = append(found, Violation{InvariantProcess, fmt.Sprintf("it has ended: %v", err)})
	default:
	}
	j.logf("clock: %d jumps of %s: %d writes, %d effective", j.figures.Jumps, jump, j.figures.Requests, j.figures.Writes)
	if len(found) > 0 {
		return fmt.Errorf("%w with a clock that jumps:\n%s\nwrites:\n%s", ErrInvariant, texts(found), listing(all))
	}
	return nil
}

// mostWithJumps limits the writes: two patches, two objects of a shutdown, and the reports about them.
const mostWithJumps = 40
