// SPDX-License-Identifier: Apache-2.0

package existing

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
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
	"k8s.io/client-go/tools/clientcmd"
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
	// actVariable has this program perform an act as a hook, see perform.
	actVariable    = "SNO_TEST_ACT"
	serverVariable = "SNO_TEST_SERVER"

	rebooted   = "edge-0"
	oldVersion = "4.21.7"
	newVersion = "4.22.0"
)

// perform is a hook: it does on the API server what a kubelet and the cluster-version-operator do.
func perform(ctx context.Context, act string) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	kube, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	switch act {
	case "reboot", "reboot, NotReady", "reboot, old containers":
		return boot(ctx, kube, os.Args[len(os.Args)-1], act)
	case "upgrade", "partial upgrade", "older upgrade":
		return upgrade(ctx, kube, act)
	case "outage":
		response, err := http.Get(os.Getenv(serverVariable) + "?seconds=" + os.Getenv(OutageVariable))
		if err != nil {
			return err
		}
		return response.Body.Close()
	}
	return fmt.Errorf("unknown act %q", act)
}

func boot(ctx context.Context, kube client.Client, name, act string) error {
	node := &corev1.Node{}
	if err := kube.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return err
	}
	node.Status.NodeInfo.BootID = "second"
	node.Status.Conditions[0].Status = corev1.ConditionTrue
	if act == "reboot, NotReady" {
		node.Status.Conditions[0].Status = corev1.ConditionFalse
	}
	if err := kube.Status().Update(ctx, node); err != nil || act == "reboot, old containers" {
		return err
	}
	pod := &corev1.Pod{}
	if err := kube.Get(ctx, client.ObjectKey{Namespace: "openshift-console", Name: "console"}, pod); err != nil {
		return err
	}
	pod.Status.ContainerStatuses[0].ContainerID = "cri-o://second"
	return kube.Status().Update(ctx, pod)
}

func upgrade(ctx context.Context, kube client.Client, act string) error {
	version := &configv1.ClusterVersion{}
	if err := kube.Get(ctx, client.ObjectKey{Name: "version"}, version); err != nil {
		return err
	}
	entry := configv1.UpdateHistory{State: configv1.PartialUpdate, StartedTime: metav1.Now(), Version: newVersion, Image: "registry.invalid/release:" + newVersion}
	if act == "older upgrade" {
		entry.State, entry.StartedTime = configv1.CompletedUpdate, metav1.NewTime(time.Unix(1, 0))
		entry.CompletionTime = ptr.To(metav1.Now())
	}
	version.Status.History = append([]configv1.UpdateHistory{entry}, version.Status.History...)
	if err := kube.Status().Update(ctx, version); err != nil || act != "upgrade" {
		return err
	}
	version.Status.History[0].State, version.Status.History[0].CompletionTime = configv1.CompletedUpdate, ptr.To(metav1.Now())
	return kube.Status().Update(ctx, version)
}

// line returns a hook that performs an act.
func line(t *testing.T, kubeconfig, act string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s='%s' KUBECONFIG='%s' '%s'", actVariable, act, kubeconfig, self)
}

// onlyCheck runs one check.
func onlyCheck(t *testing.T, id string, options Options, times cluster.Times) (report.Result, string) {
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
	got.Times = times
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

// A reboot counts if the boot ID is another one, the node is Ready and its containers are new, whatever the exit code
// of the hook is.
func TestRebootCommand(t *testing.T) {
	createInfrastructure(t)
	file := kubeconfigOf(t, "administrator", masters)
	for name, test := range map[string]struct {
		line     string
		want     report.Status
		reason   string
		progress []string
	}{
		"reboots": {
			line: line(t, file, "reboot"), want: report.Passed, progress: []string{"reboot-command: running " + actVariable},
		},
		"leaves a child": {
			line: "sleep 100 & " + line(t, file, "reboot"), want: report.Passed, progress: []string{"processes that it left were killed"},
		},
		"does nothing": {
			line: "echo rebooting", want: report.Inconclusive, progress: []string{"reboot-command: rebooting " + rebooted},
			reason: "restart node " + rebooted + ": the disruption did not happen: status.nodeInfo.bootID is the same as before",
		},
		"fails": {
			line: "echo no route to host >&2; exit 3;", want: report.Inconclusive, progress: []string{"reboot-command: no route to host"},
			reason: "restart node " + rebooted + ": the disruption did not happen: reboot-command: the command failed: exit status 3: no route to host",
		},
		"hangs": {
			line: "sleep 100;:", want: report.Inconclusive,
			reason: "restart node " + rebooted + ": the disruption did not happen: reboot-command: the command was stopped: context deadline exceeded",
		},
		"the node is not Ready": {
			line: line(t, file, "reboot, NotReady"), want: report.Failed, reason: "restart node " + rebooted + ": the node has not recovered: it has booted and is not Ready",
		},
		"the containers are old": {
			line: line(t, file, "reboot, old containers"), want: report.Failed,
			reason: "restart node " + rebooted + ": the node has not recovered: it has booted, but pod openshift-console/console still has a container from before",
		},
	} {
		t.Run(name, func(t *testing.T) {
			console(t)
			folder := filepath.Join(t.TempDir(), "artifacts")
			result, progress := onlyCheck(t, "SNO-TOP-010", Options{Kubeconfig: file, RebootCommand: test.line, Artifacts: folder}, timesFor(test.want == report.Passed))
			if result.Status != test.want || result.Reason != test.reason {
				t.Errorf("%s, %q, want %s, %q\n%+v", result.Status, result.Reason, test.want, test.reason, result)
			}
			log, err := os.ReadFile(filepath.Join(folder, "reboot-command.log"))
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range test.progress {
				_, text, _ := strings.Cut(part, ": ")
				if !strings.Contains(progress, part) || !strings.Contains(string(log), text) {
					t.Errorf("%q is missing in the progress\n%s\nor in the log\n%s", part, progress, log)
				}
			}
		})
	}
}

// An act that did not happen is not tried again for another check.
func TestFailedActIsNotRepeated(t *testing.T) {
	createInfrastructure(t)
	console(t)
	attempts := filepath.Join(t.TempDir(), "attempts")
	got, _, err := target(t, Options{
		Kubeconfig: kubeconfigOf(t, "administrator", masters), Tiers: []catalogue.Tier{catalogue.Disruptive}, RebootCommand: "echo once >>'" + attempts + "';:",
	})
	if err != nil {
		t.Fatal(err)
	}
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
	text, err := os.ReadFile(attempts)
	if diff := cmp.Diff(messages[0], messages[1]); diff != "" || err != nil || string(text) != "once\n" {
		t.Errorf("attempts %q, %v, errors:\n%s", text, err, diff)
	}
}

// An upgrade counts if the history of the ClusterVersion has a newer entry, and passes if that is Completed.
func TestUpgradeCommand(t *testing.T) {
	createInfrastructure(t)
	installClusterVersion(t)
	file := kubeconfigOf(t, "administrator", masters)
	for name, test := range map[string]struct {
		line   string
		want   report.Status
		reason string
		got    string
	}{
		"upgrades":      {line: line(t, file, "upgrade"), want: report.Passed, got: newVersion + " is Completed"},
		"stays partial": {line: line(t, file, "partial upgrade"), want: report.Failed, got: newVersion + " is Partial"},
		"does nothing": {
			line: "true", want: report.Inconclusive,
			reason: "the disruption did not happen: status.history of ClusterVersion version has no entry newer than " + oldVersion,
		},
		"an older entry": {
			line: line(t, file, "older upgrade"), want: report.Inconclusive,
			reason: "the disruption did not happen: status.history of ClusterVersion version has no entry newer than " + oldVersion,
		},
		"fails": {
			line: "exit 1;", want: report.Inconclusive, reason: "upgrade: the disruption did not happen: upgrade-command: the command failed: exit status 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			console(t)
			clusterVersion(t)
			result, _ := onlyCheck(t, "SNO-TOP-014", Options{Kubeconfig: file, UpgradeCommand: test.line}, timesFor(test.want == report.Passed))
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
func TestOutageCommand(t *testing.T) {
	createInfrastructure(t)
	console(t)
	p := newProxy(t)
	// Nothing follows a new Deployment here, so the account may create none.
	const account = "without-create"
	grant(t, account,
		rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}})
	file := changedKubeconfig(t, kubeconfigOf(t, account), func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = "https://" + p.address })
	controller := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seconds, err := strconv.Atoi(r.URL.Query().Get("seconds"))
		if err != nil {
			t.Error(err)
		}
		p.refuse(t, time.Duration(seconds)*time.Second)
	}))
	defer controller.Close()
	outage := serverVariable + "=" + controller.URL + " " + line(t, file, "outage")
	for name, test := range map[string]struct {
		line   string
		want   report.Status
		reason string
	}{
		"stops it": {line: outage, want: report.Passed},
		"for too short": {
			line: `sh -c '` + OutageVariable + `=1 exec "$@"' sh env ` + outage, want: report.Inconclusive,
			reason: "the disruption did not happen: the API server answered during the outage of 3s",
		},
		"does nothing": {line: "sleep 1;:", want: report.Inconclusive, reason: "the disruption did not happen: the API server answered during the outage of 3s"},
		"fails": {
			line: "exit 1;", want: report.Inconclusive, reason: "stop the API server: the disruption did not happen: outage-command: the command failed: exit status 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			result, progress := onlyCheck(t, "SNO-TOP-011", Options{Kubeconfig: file, OutageCommand: test.line}, timesFor(true))
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

// proxy forwards connections to the API server, and can refuse them.
type proxy struct {
	address, server string

	mu          sync.Mutex
	listener    net.Listener
	connections map[net.Conn]bool
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	address, err := url.Parse(server.Config.Host)
	if err != nil || address.Host == "" {
		address = &url.URL{Host: server.Config.Host}
	}
	p := &proxy{address: "127.0.0.1:0", server: address.Host, connections: map[net.Conn]bool{}}
	p.listen(t)
	p.address = p.listener.Addr().String()
	t.Cleanup(p.close)
	return p
}

func (p *proxy) listen(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", p.address)
	if err != nil {
		t.Error(err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener = listener
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go p.forward(from)
		}
	}()
}

func (p *proxy) forward(from net.Conn) {
	to, err := net.Dial("tcp", p.server)
	if err != nil {
		_ = from.Close()
		return
	}
	p.mu.Lock()
	p.connections[from], p.connections[to] = true, true
	p.mu.Unlock()
	go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
	_, _ = io.Copy(from, to)
	_ = from.Close()
}

func (p *proxy) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.listener.Close()
	for connection := range p.connections {
		_ = connection.Close()
	}
	clear(p.connections)
}

func (p *proxy) refuse(t *testing.T, length time.Duration) {
	p.close()
	<-time.After(length)
	p.listen(t)
}
