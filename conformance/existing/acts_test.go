// SPDX-License-Identifier: Apache-2.0

package existing

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
)

const (
	rebooted   = "edge-0"
	oldVersion = "4.21.7"
	newVersion = "4.22.0"
)

// boots does on the API server what a kubelet does, with this status of the node and this container of its pod.
func boots(t *testing.T, ready corev1.ConditionStatus, container string) func(context.Context, string) error {
	kube := admin(t)
	return func(ctx context.Context, name string) error {
		node, pod := &corev1.Node{}, &corev1.Pod{}
		if err := kube.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
			return err
		}
		node.Status.NodeInfo.BootID, node.Status.Conditions[0].Status = "second", ready
		if err := kube.Status().Update(ctx, node); err != nil {
			return err
		}
		if err := kube.Get(ctx, client.ObjectKey{Namespace: "openshift-console", Name: "console"}, pod); err != nil {
			return err
		}
		pod.Status.ContainerStatuses[0].ContainerID = container
		return kube.Status().Update(ctx, pod)
	}
}

// upgrades adds an entry to the history, as the cluster-version-operator does.
func upgrades(t *testing.T, state configv1.UpdateState, started time.Time) func(context.Context) error {
	kube := admin(t)
	return func(ctx context.Context) error {
		version := &configv1.ClusterVersion{}
		if err := kube.Get(ctx, client.ObjectKey{Name: "version"}, version); err != nil {
			return err
		}
		entry := configv1.UpdateHistory{State: state, StartedTime: metav1.NewTime(started), Version: newVersion, Image: "registry.invalid/release:" + newVersion}
		if state == configv1.CompletedUpdate {
			entry.CompletionTime = ptr.To(metav1.Now())
		}
		version.Status.History = append([]configv1.UpdateHistory{entry}, version.Status.History...)
		return kube.Status().Update(ctx, version)
	}
}

// onlyCheck runs one check on a cluster with the times and acts of change.
func onlyCheck(t *testing.T, id string, options Options, change func(*cluster.Target)) (report.Result, string) {
	t.Helper()
	check, err := catalogue.Lookup(id)
	if err != nil {
		t.Fatal(err)
	}
	var progress strings.Builder
	options.Tiers, options.Progress = []catalogue.Tier{check.Tier}, &progress
	got, err := Target(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	got.Times = cluster.SimulatedTimes()
	change(&got)
	run, err := runner.New(t.Context(), got, runner.Selection{Tiers: options.Tiers, IDs: []string{id}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = run.Close(t.Context()) }()
	if err := run.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	result, err := run.Result(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return result, progress.String()
}

// timesFor returns those for one node without controllers. Acts that succeed have a minute, for a busy machine, and
// others end with the limit.
func timesFor(succeeds bool) cluster.Times {
	times := cluster.SimulatedTimes()
	times.Poll, times.Quiet, times.Outage = 50*time.Millisecond, 300*time.Millisecond, 3*time.Second
	times.Restart = 6 * time.Second
	if succeeds {
		times.Restart = time.Minute
	}
	times.Upgrade = times.Restart
	return times
}

// console creates a Deployment whose pod runs on the node, until the end of the test.
func console(t *testing.T) {
	t.Helper()
	kube := admin(t)
	labels := map[string]string{"app": "console"}
	pod := corev1.PodSpec{NodeName: rebooted, Containers: []corev1.Container{{Name: "x", Image: "x"}}}
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue}
	meta := metav1.ObjectMeta{Namespace: "openshift-console", Name: "console", Labels: labels}
	objects := []client.Object{
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: rebooted}, Status: corev1.NodeStatus{
			NodeInfo: corev1.NodeSystemInfo{BootID: "first"}, Conditions: []corev1.NodeCondition{ready},
		}},
		&appsv1.Deployment{
			ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
			},
			Status: appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1},
		},
		&corev1.Pod{ObjectMeta: meta, Spec: pod, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "x", ContainerID: "cri-o://first", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}}},
	}
	createNamespace(t, meta.Namespace)
	for _, object := range objects {
		status, ok := object.DeepCopyObject().(client.Object)
		if err := kube.Create(t.Context(), object); err != nil || !ok {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := kube.Delete(context.WithoutCancel(t.Context()), object, client.GracePeriodSeconds(0)); err != nil {
				t.Error(err)
			}
		})
		status.SetResourceVersion(object.GetResourceVersion())
		if err := kube.Status().Update(t.Context(), status); err != nil {
			t.Fatal(err)
		}
	}
}

// A reboot counts if the boot ID is another one, the node is Ready and its containers are new, whatever the act returns.
func TestReboot(t *testing.T) {
	createInfrastructure(t)
	file := kubeconfigOf(t, "administrator", masters)
	const what = "restart node " + rebooted + ": "
	for name, test := range map[string]struct {
		act    func(context.Context, string) error
		want   report.Status
		reason string
	}{
		"reboots": {act: boots(t, corev1.ConditionTrue, "cri-o://second"), want: report.Passed},
		"does nothing": {
			act: func(context.Context, string) error { return nil }, want: report.Inconclusive,
			reason: what + "the disruption did not happen: status.nodeInfo.bootID is the same as before",
		},
		"fails": {
			act: func(context.Context, string) error { return catalogue.ErrNotPerformed }, want: report.Inconclusive, reason: what + catalogue.ErrNotPerformed.Error(),
		},
		"the node is not Ready": {
			act: boots(t, corev1.ConditionFalse, "cri-o://second"), want: report.Failed, reason: what + "the node has not recovered: it has booted and is not Ready",
		},
		"the containers are old": {
			act: boots(t, corev1.ConditionTrue, "cri-o://first"), want: report.Failed,
			reason: what + "the node has not recovered: it has booted, but pod openshift-console/console still has a container from before",
		},
	} {
		t.Run(name, func(t *testing.T) {
			console(t)
			result, _ := onlyCheck(t, "SNO-TOP-010", Options{Kubeconfig: file}, func(target *cluster.Target) {
				target.Times, target.RestartNode = timesFor(test.want == report.Passed), test.act
			})
			if result.Status != test.want || result.Reason != test.reason {
				t.Errorf("%s, %q, want %s, %q\n%+v", result.Status, result.Reason, test.want, test.reason, result)
			}
		})
	}
}

// An act that did not happen is not tried again for another check.
func TestFailedActIsNotRepeated(t *testing.T) {
	createInfrastructure(t)
	console(t)
	got, err := target(t, Options{Kubeconfig: kubeconfigOf(t, "administrator", masters), Tiers: []catalogue.Tier{catalogue.Disruptive}})
	if err != nil {
		t.Fatal(err)
	}
	attempts := 0
	got.RestartNode = func(context.Context, string) error { attempts++; return nil }
	got.Times = timesFor(false)
	disturber, err := runner.Disturber(t.Context(), got)
	if err != nil {
		t.Fatal(err)
	}
	var messages []string
	for range 2 {
		_, err := disturber.Perform(t.Context(), catalogue.RestartNodes)
		messages = append(messages, fmt.Sprint(err))
	}
	if diff := cmp.Diff(messages[0], messages[1]); diff != "" || attempts != 1 {
		t.Errorf("%d attempts, errors:\n%s", attempts, diff)
	}
}

// An upgrade counts if the history of the ClusterVersion has a newer entry, and passes if that is Completed.
func TestUpgrade(t *testing.T) {
	createInfrastructure(t)
	installClusterVersion(t)
	file := kubeconfigOf(t, "administrator", masters)
	const notNewer = "the disruption did not happen: status.history of ClusterVersion version has no entry newer than " + oldVersion
	for name, test := range map[string]struct {
		act         func(context.Context) error
		want        report.Status
		reason, got string
	}{
		"upgrades":       {act: upgrades(t, configv1.CompletedUpdate, time.Now()), want: report.Passed, got: newVersion + " is Completed"},
		"stays partial":  {act: upgrades(t, configv1.PartialUpdate, time.Now()), want: report.Failed, got: newVersion + " is Partial"},
		"does nothing":   {act: func(context.Context) error { return nil }, want: report.Inconclusive, reason: notNewer},
		"an older entry": {act: upgrades(t, configv1.CompletedUpdate, time.Unix(1, 0)), want: report.Inconclusive, reason: notNewer},
		"fails": {
			act: func(context.Context) error { return catalogue.ErrNotPerformed }, want: report.Inconclusive, reason: "upgrade: " + catalogue.ErrNotPerformed.Error(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			console(t)
			clusterVersion(t)
			result, _ := onlyCheck(t, "SNO-TOP-014", Options{Kubeconfig: file}, func(target *cluster.Target) {
				target.Times, target.Upgrade = timesFor(test.want == report.Passed), test.act
			})
			if result.Status != test.want || result.Reason != test.reason {
				t.Errorf("%s, %q, want %s, %q\n%+v", result.Status, result.Reason, test.want, test.reason, result)
			}
			if test.got != "" && (len(result.Evidence) != 2 || result.Evidence[0].Got != test.got) {
				t.Errorf("evidence %+v, want %s and the console", result.Evidence, test.got)
			}
		})
	}
}

func installClusterVersion(t *testing.T) {
	t.Helper()
	file, err := manifestOf(t.Context(), "clusterversions")
	if err != nil {
		t.Fatal(err)
	}
	options := envtest.CRDInstallOptions{Paths: []string{file}}
	if _, err := envtest.InstallCRDs(server.Config, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := envtest.UninstallCRDs(server.Config, options); err != nil {
			t.Error(err)
		}
		ctx := context.WithoutCancel(t.Context())
		gone := func(ctx context.Context) (bool, error) {
			return apierrors.IsNotFound(admin(t).Get(ctx, client.ObjectKey{Name: "version"}, &configv1.ClusterVersion{})), nil
		}
		if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, gone); err != nil {
			t.Error(err)
		}
	})
}

func clusterVersion(t *testing.T) {
	t.Helper()
	kube := admin(t)
	began := metav1.NewTime(time.Now().Add(-time.Hour))
	version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}, Spec: configv1.ClusterVersionSpec{ClusterID: "7a3d5c1e-0b1d-4b6f-9c55-5a0e0f2e7d11"}}
	if err := kube.Create(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kube.Delete(context.WithoutCancel(t.Context()), version); err != nil {
			t.Error(err)
		}
	})
	version.Status.Desired = configv1.Release{Version: oldVersion, Image: "registry.invalid/release:" + oldVersion}
	version.Status.VersionHash = "x"
	version.Status.History = []configv1.UpdateHistory{{
		State: configv1.CompletedUpdate, StartedTime: began, CompletionTime: &began, Version: oldVersion, Image: version.Status.Desired.Image,
	}}
	if err := kube.Status().Update(t.Context(), version); err != nil {
		t.Fatal(err)
	}
}

// An outage counts if no request was answered for its length.
func TestOutage(t *testing.T) {
	createInfrastructure(t)
	console(t)
	p := newProxy(t)
	// Nothing follows a new Deployment here, so the account may create none.
	const account = "without-create"
	grant(t, account,
		rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}})
	file := changedKubeconfig(t, kubeconfigOf(t, account), func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = "https://" + p.Addr().String() })
	const answered = "the disruption did not happen: the API server answered during the outage of 3s"
	for name, test := range map[string]struct {
		act    func(context.Context, time.Duration) error
		want   report.Status
		reason string
	}{
		"stops it":      {act: func(_ context.Context, length time.Duration) error { return p.refuse(length) }, want: report.Passed},
		"for too short": {act: func(context.Context, time.Duration) error { return p.refuse(time.Second) }, want: report.Inconclusive, reason: answered},
		"fails": {
			act: func(context.Context, time.Duration) error { return catalogue.ErrNotPerformed }, want: report.Inconclusive,
			reason: "stop the API server: " + catalogue.ErrNotPerformed.Error(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			result, progress := onlyCheck(t, "SNO-TOP-011", Options{Kubeconfig: file}, func(target *cluster.Target) {
				target.Times, target.Outage = timesFor(true), test.act
			})
			if result.Status != test.want || result.Reason != test.reason {
				t.Errorf("%s, %q, want %s, %q\n%+v\n%s", result.Status, result.Reason, test.want, test.reason, result, progress)
			}
			if test.want != report.Passed {
				return
			}
			if len(result.Figures) != 2 || result.Figures[0].Value < 2.5 {
				t.Errorf("figures %+v, want the measured length, and nothing of a new Deployment", result.Figures)
			}
			if !strings.Contains(progress, "namespaces is forbidden") {
				t.Errorf("the missing permission is not reported:\n%s", progress)
			}
		})
	}
}

// proxy forwards connections to the API server, and can refuse new ones.
type proxy struct {
	net.Listener
	server   string
	refusing atomic.Bool
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	address, err := url.Parse(server.Config.Host)
	if err != nil || address.Host == "" {
		address = &url.URL{Host: server.Config.Host}
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: listener, server: address.Host}
	t.Cleanup(func() { _ = p.Close() })
	go func() {
		for {
			from, err := p.Accept()
			if err != nil {
				return
			}
			go p.forward(from)
		}
	}()
	return p
}

func (p *proxy) forward(from net.Conn) {
	defer func() { _ = from.Close() }()
	if p.refusing.Load() {
		return
	}
	to, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
	_, _ = io.Copy(from, to)
}

func (p *proxy) refuse(length time.Duration) error {
	p.refusing.Store(true)
	<-time.After(length)
	p.refusing.Store(false)
	return nil
}
