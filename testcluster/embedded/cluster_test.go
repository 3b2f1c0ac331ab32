// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/solonode/sno/testcluster/audit"
	"github.com/solonode/sno/testcluster/eventually"
)

// crashChildEnv makes the test binary start a cluster in the parent folder that is its value, and wait to be killed.
const crashChildEnv = "SNO_TEST_CRASH_CHILD"

const testLimit = 2 * time.Minute

var shared struct {
	once    sync.Once
	cluster *Cluster
	err     error
}

func TestMain(m *testing.M) {
	if parent := os.Getenv(crashChildEnv); parent != "" {
		crashChild(parent)
	}
	logf.SetLogger(logr.Discard()) // envtest logs through controller-runtime, which warns when there is no logger
	code := m.Run()
	if shared.cluster != nil {
		if err := shared.cluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the shared cluster:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// sharedCluster returns the cluster that the tests of this package share. It fails, never skips, when there is none.
func sharedCluster(t *testing.T) *Cluster {
	t.Helper()
	shared.once.Do(func() {
		shared.cluster, shared.err = Start(context.Background(), Config{Progress: os.Stderr})
	})
	if shared.err != nil {
		t.Fatalf("these tests need a real API server: %v", shared.err)
	}
	return shared.cluster
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	t.Cleanup(cancel)
	return ctx
}

func runPod(ctx context.Context, t *testing.T, c *Cluster) (running *corev1.Pod) {
	t.Helper()
	pods := c.Clientset().CoreV1().Pods(metav1.NamespaceDefault)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "first"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "pause", Image: "pause"}}},
	}
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually.Succeeds(t, "the pod runs", func() (err error) {
		if running, err = pods.Get(ctx, pod.Name, metav1.GetOptions{}); err == nil && running.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("phase %s, conditions %v", running.Status.Phase, running.Status.Conditions)
		}
		return err
	})
	return running
}

func TestStartToFirstPod(t *testing.T) {
	ctx := testContext(t)
	started := time.Now()
	var progress bytes.Buffer
	c, err := Start(ctx, Config{ParentDir: t.TempDir(), Progress: &progress})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	if err := c.AddNodes(ctx, NodeSpec{Name: "first", Roles: []string{"worker"}, Address: "192.0.2.7"}); err != nil {
		t.Fatal(err)
	}
	pod := runPod(ctx, t, c)
	t.Logf("first pod running after %s", time.Since(started).Round(time.Millisecond))
	if pod.Status.HostIP != "192.0.2.7" {
		t.Errorf("the pod's host is %s, want the node's address", pod.Status.HostIP)
	}
	if len(pod.Spec.Tolerations) != 2 {
		t.Errorf("tolerations %v, want the two that DefaultTolerationSeconds adds", pod.Spec.Tolerations)
	}
	if len(pod.Spec.Volumes) != 1 || pod.Spec.Volumes[0].Projected == nil {
		t.Errorf("volumes %v, want the token that ServiceAccount adds", pod.Spec.Volumes)
	}
	version, err := c.Clientset().Discovery().ServerVersion()
	if err != nil || version.GitVersion != c.assets.Version {
		t.Errorf("server version %v, %v, want %s", version, err, c.assets.Version)
	}
	for _, component := range c.components {
		if info, err := os.Stat(component.LogPath()); err != nil {
			t.Errorf("log of %s: %v", component.name, err)
		} else if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("log of %s can be read by others: %v", component.name, info.Mode())
		}
	}
	for _, want := range []string{"API server is ready", "CustomResourceDefinitions", "Cluster is up"} {
		if !strings.Contains(progress.String(), want) {
			t.Errorf("progress %q lacks %q", progress.String(), want)
		}
	}
	pids := pidsOf(c)
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	for name, pid := range pids {
		if processLives(pid) {
			t.Errorf("%s runs after Stop", name)
		}
	}
	if _, err := os.Stat(c.Dir()); !os.IsNotExist(err) {
		t.Errorf("the folder is there after Stop: %v", err)
	}
	if err := c.Component(APIServer).Start(ctx); !errors.Is(err, ErrStopped) {
		t.Errorf("start after Stop: %v, want ErrStopped", err)
	}
}

func TestSideBySideAndContext(t *testing.T) {
	ctx := testContext(t)
	one := sharedCluster(t)
	otherCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	parent := t.TempDir()
	two, err := Start(otherCtx, Config{ParentDir: parent, Keep: true, CRDs: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = two.Stop() })
	if one.URL() == two.URL() || one.Dir() == two.Dir() {
		t.Fatalf("two clusters share %s or %s", one.URL(), one.Dir())
	}
	if err := two.EnsureNamespace(ctx, "only-in-two"); err != nil {
		t.Fatal(err)
	}
	if _, err := one.Clientset().CoreV1().Namespaces().Get(ctx, "only-in-two", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a namespace of one cluster in the other: %v", err)
	}
	foreign := one.RESTConfig()
	foreign.Host = two.URL()
	client, err := kubernetes.NewForConfig(foreign)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Discovery().ServerVersion(); err == nil {
		t.Error("one cluster's credentials work in the other")
	}
	pids := pidsOf(two)
	cancel()
	for name, pid := range pids {
		eventually.Succeeds(t, name+" ends with the context", func() error {
			if processLives(pid) {
				return errors.New("it lives")
			}
			return nil
		})
	}
	if err := two.Stop(); err != nil {
		t.Errorf("Stop after the end of the context: %v", err)
	}
	if _, err := os.Stat(two.AuditLogPath()); err != nil {
		t.Errorf("the folder was to be kept: %v", err)
	}
	if err := sweep(parent); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(two.Dir()); err != nil {
		t.Errorf("a kept folder was removed: %v", err)
	}
}

func TestPortTaken(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a cluster of its own; make proof runs it")
	}
	ctx := testContext(t)
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	taken := other.Addr().(*net.TCPAddr).Port
	calls := 0
	c, err := Start(ctx, Config{ParentDir: t.TempDir(), CRDs: []string{}, freePort: func() (int, error) {
		if calls++; calls == 1 {
			return taken, nil
		}
		return FreePort()
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Stop() }()
	if calls != 2 || strings.HasSuffix(c.URL(), fmt.Sprint(":", taken)) {
		t.Errorf("%d ports were tried, and the address is %s, though %d was taken", calls, c.URL(), taken)
	}
}

func TestStartFailures(t *testing.T) {
	ctx := testContext(t)
	assets := sharedCluster(t).assets
	broken := assets
	broken.Dir = t.TempDir()
	if err := os.CopyFS(filepath.Join(broken.Dir, "stages"), os.DirFS(filepath.Join(assets.Dir, "stages"))); err != nil {
		t.Fatal(err)
	}
	const script = "#!/bin/sh\necho this is a broken program >&2\nexit 3\n"
	for _, name := range []string{Etcd, APIServer} {
		if err := os.WriteFile(broken.Program(name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	long := filepath.Join(t.TempDir(), strings.Repeat("x", socketLimit))
	for _, test := range []struct {
		name   string
		ctx    context.Context
		config Config
		want   string
	}{
		{"component ends at once", ctx, Config{Assets: broken}, "this is a broken program"},
		{"context is over", cancelled, Config{Assets: assets}, "context canceled"},
		{"path too long for a socket", ctx, Config{Assets: assets, ParentDir: long}, "set Config.ParentDir or TMPDIR to a shorter one"},
		{"definition does not exist", ctx, Config{Assets: assets, CRDs: []string{"config/v1/none.yaml"}}, "none.yaml"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.config.ParentDir == "" {
				test.config.ParentDir = t.TempDir()
			}
			c, err := Start(test.ctx, test.config)
			if err == nil {
				_ = c.Stop()
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q lacks %q", err, test.want)
			}
			left, err := os.ReadDir(test.config.ParentDir)
			if err != nil || len(left) != 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// A write in progress is waited for, unless the API server was killed.
func TestAuditWaits(t *testing.T) {
	if testing.Short() {
		t.Skip("it kills the API server twice; make proof runs it")
	}
	ctx := testContext(t)
	c := sharedCluster(t)
	offset, err := c.AuditOffset(ctx)
	if err != nil {
		t.Fatal(err)
	}
	const slow, lost = "slow", "lost"
	finish, ended := hold(ctx, t, c, slow)
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if events, _, err := c.AuditEvents(short, offset, AuditFilter{UserAgent: slow}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("in the middle of a write: %d events, %v, want %v", len(events), err, context.DeadlineExceeded)
	}
	finish()
	events, _, err := c.AuditEvents(ctx, offset, AuditFilter{UserAgent: slow, WritesOnly: true})
	if err != nil || len(events) != 1 || events[0].ResponseStatus.Code != http.StatusCreated {
		t.Errorf("%d events, %v, want the write that ended meanwhile, once: %+v", len(events), err, events)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}

	// Writes that ended with the API server are not waited for, whether it was started again or not.
	for _, again := range []bool{true, false} {
		_, ended = hold(ctx, t, c, fmt.Sprint(lost, again))
		if err := c.KillAPIServer(); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err == nil {
			t.Error("a killed API server answers")
		}
		if again {
			if err := c.StartAPIServer(ctx); err != nil {
				t.Fatal(err)
			}
		}
		short, cancel := context.WithTimeout(ctx, auditTimeout/2)
		defer cancel()
		if events, _, err := c.AuditEvents(short, offset, AuditFilter{UserAgent: fmt.Sprint(lost, again)}); err != nil || len(events) != 0 {
			t.Errorf("killed, started again %t: %d events, %v, want none of what was never answered", again, len(events), err)
		}
	}
	if err := c.StartAPIServer(ctx); err != nil {
		t.Fatal(err)
	}
}

// hold begins to create a ConfigMap and completes the request when finish is called.
func hold(ctx context.Context, t *testing.T, c *Cluster, agent string) (finish func(), ended <-chan error) {
	t.Helper()
	config := c.RESTConfig()
	config.UserAgent = agent
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	body, toSend := io.Pipe()
	result := make(chan error, 1)
	go func() {
		result <- kube.CoreV1().RESTClient().Post().Namespace(metav1.NamespaceDefault).Resource("configmaps").SetHeader("Content-Type", "application/json").
			Body(body).Do(ctx).Error()
	}()
	eventually.Succeeds(t, agent+" has begun", func() error {
		begun, _, err := audit.Read(c.AuditLogPath(), 0, func(e *auditv1.Event) bool { return e.UserAgent == agent })
		if err != nil || len(begun) == 0 {
			return errors.New(fmt.Sprint("not in the audit log, ", err))
		}
		return nil
	})
	return func() {
		if _, err := fmt.Fprintf(toSend, `{"metadata":{"name":%q}}`, agent); err != nil {
			t.Error(err)
		}
		_ = toSend.Close()
	}, result
}

func TestAuditFilter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	const line = `{"verb":"patch","user":{"username":"u"},"userAgent":"agent","objectRef":{"resource":"pods","apiGroup":"g","namespace":"ns","name":"n"}}
{"verb":"get","user":{"username":"u"}}
`
	if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	all := AuditFilter{User: "u", UserAgent: "agent", Resource: "pods", Group: "g", Namespace: "ns", Name: "n", WritesOnly: true}
	for _, test := range []struct {
		name   string
		filter AuditFilter
		want   int
	}{
		{"no filter", AuditFilter{}, 2},
		{"writes", AuditFilter{WritesOnly: true}, 1},
		{"all fields", all, 1},
		{"another user", AuditFilter{User: "x"}, 0},
		{"another agent", AuditFilter{UserAgent: "x"}, 0},
		{"another resource", AuditFilter{Resource: "x"}, 0},
		{"another group", AuditFilter{Group: "x"}, 0},
		{"another namespace", AuditFilter{Namespace: "x"}, 0},
		{"another name", AuditFilter{Name: "x"}, 0},
	} {
		if events, _, err := readAudit(path, 0, test.filter); err != nil || len(events) != test.want {
			t.Errorf("%s: %d events, %v, want %d", test.name, len(events), err, test.want)
		}
	}
}

// crashChild starts a cluster, prints its folder and processes as one line of JSON, and waits to be killed.
func crashChild(parent string) {
	c, err := Start(context.Background(), Config{ParentDir: parent, CRDs: []string{}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(crashReport{Dir: c.Dir(), PIDs: pidsOf(c)}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(2)
}

type crashReport struct {
	Dir  string
	PIDs map[string]int
}

func TestCrashTakesComponentsAlong(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a cluster of its own; make proof runs it")
	}
	ctx := testContext(t)
	sharedCluster(t) // builds the programs if need be, so that the child need not
	parent := t.TempDir()
	child := exec.CommandContext(ctx, os.Args[0])
	child.Env = append(os.Environ(), crashChildEnv+"="+parent)
	child.Stderr = os.Stderr
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		t.Fatalf("the child reports nothing: %v", err)
	}
	var report crashReport
	if err := json.Unmarshal(line, &report); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, pid := range report.PIDs {
			if t.Failed() && processLives(pid) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	if len(report.PIDs) != 5 {
		t.Fatalf("the child runs %v, want five components", report.PIDs)
	}
	for name, pid := range report.PIDs {
		if !processLives(pid) {
			t.Fatalf("%s has ended before the crash, so this test would prove nothing", name)
		}
	}
	// The folder of a running cluster is not removed.
	if err := sweep(parent); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(report.Dir); err != nil {
		t.Fatalf("the folder of a running cluster was removed: %v", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	for name, pid := range report.PIDs {
		eventually.Succeeds(t, name+" ends with its parent", func() error {
			if processLives(pid) {
				return errors.New("it lives")
			}
			return nil
		})
	}
	if _, err := os.Stat(report.Dir); err != nil {
		t.Fatalf("the folder of the ended cluster: %v", err)
	}
	if err := sweep(parent); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(report.Dir); !os.IsNotExist(err) {
		t.Errorf("the folder of the ended cluster was not removed: %v", err)
	}
}

func pidsOf(c *Cluster) map[string]int {
	pids := map[string]int{}
	for _, component := range c.components {
		if pid := component.PID(); pid != 0 {
			pids[component.name] = pid
		}
	}
	return pids
}

func processLives(pid int) bool {
	state, err := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(pid)).Output()
	return err == nil && len(bytes.TrimSpace(state)) > 0 && state[0] != 'Z'
}
