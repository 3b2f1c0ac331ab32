// SPDX-License-Identifier: Apache-2.0

package existing

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
)

const masters = "system:masters"

var static = []catalogue.Tier{catalogue.Static}

func target(t *testing.T, options Options) (cluster.Target, error) {
	t.Helper()
	options.Progress = t.Output()
	return Target(t.Context(), options)
}

func TestKubeconfig(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("clusters: 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	home := clientcmd.RecommendedHomeFile
	clientcmd.RecommendedHomeFile = filepath.Join(t.TempDir(), "config")
	t.Cleanup(func() { clientcmd.RecommendedHomeFile = home })
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for name, test := range map[string]struct{ flag, env, want string }{
		"flag names no file":     {flag: nowhere, want: nowhere},
		"variable names no file": {env: nowhere, want: "$KUBECONFIG names " + nowhere},
		"no kubeconfig":          {flag: broken, want: broken},
		"no kubeconfig anywhere": {want: "use --kubeconfig FILE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", test.env)
			_, _, err := load(test.flag)
			if !errors.Is(err, ErrKubeconfig) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	good := kubeconfigOf(t, "administrator", masters)
	for name, test := range map[string]struct {
		change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)
		want   string
	}{
		"no server": {
			change: func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = "https://127.0.0.1:1" }, want: "check that the cluster is running",
		},
		"unknown account": {
			change: func(_ *clientcmdapi.Cluster, a *clientcmdapi.AuthInfo) { *a = clientcmdapi.AuthInfo{Token: "nonsense"} }, want: "log in again",
		},
		"anonymous": {
			change: func(_ *clientcmdapi.Cluster, a *clientcmdapi.AuthInfo) { *a = clientcmdapi.AuthInfo{} }, want: "use an authenticated one",
		},
		"another cluster's": {
			change: func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.TLSServerName = "elsewhere" }, want: "the certificates do not match",
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := changedKubeconfig(t, good, test.change)
			_, err := target(t, Options{Kubeconfig: file, Tiers: static})
			if !errors.Is(err, ErrUnreachable) {
				t.Fatalf("error %v, want %v", err, ErrUnreachable)
			}
			for _, part := range []string{test.want, file, "127.0.0.1"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is missing in: %v", part, err)
				}
			}
		})
	}
}

func TestPermissions(t *testing.T) {
	reader := []rbacv1.PolicyRule{{APIGroups: []string{"", "apps", "policy", "config.openshift.io", "operator.openshift.io", "machine.openshift.io", "machineconfiguration.openshift.io"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}}}
	narrow := []rbacv1.PolicyRule{{APIGroups: []string{"", "policy"}, Resources: []string{"nodes", "pods", "configmaps", "poddisruptionbudgets"}, Verbs: []string{"get", "list"}}}
	for name, test := range map[string]struct {
		user       string
		rules      []rbacv1.PolicyRule
		tiers      []catalogue.Tier
		lacks, has []string
	}{
		"reader, static": {user: "reader-static", rules: reader, tiers: static},
		"narrow, static": {
			user: "narrow", rules: narrow, tiers: static,
			lacks: []string{"get infrastructures.config.openshift.io", "list deployments.apps", "list statefulsets.apps", "list daemonsets.apps", "cluster-reader"},
			has:   []string{"list nodes", "etcds.operator.openshift.io" /* not served here */, "create namespaces"},
		},
		"reader, scheduled": {
			user: "reader-scheduled", rules: reader, tiers: []catalogue.Tier{catalogue.Static, catalogue.Scheduled},
			lacks: []string{"create namespaces", "create pods/eviction", "impersonate groups", "patch deployments.apps", "--tiers static"},
			has:   []string{"get infrastructures", "list leases"},
		},
		"reader, disruptive": {
			user: "reader-disruptive", rules: reader, tiers: []catalogue.Tier{catalogue.Disruptive},
			lacks: []string{"list leases.coordination.k8s.io", "patch deployments.apps"}, has: []string{"create namespaces"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			grant(t, test.user, test.rules...)
			_, err := target(t, Options{Kubeconfig: kubeconfigOf(t, test.user), Tiers: test.tiers})
			if len(test.lacks) == 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.Is(err, catalogue.ErrForbidden) {
				t.Fatalf("error %v, want %v", err, catalogue.ErrForbidden)
			}
			for _, part := range test.lacks {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is missing in: %v", part, err)
				}
			}
			for _, part := range test.has {
				if strings.Contains(err.Error(), part) {
					t.Errorf("%q is in: %v", part, err)
				}
			}
		})
	}
}

func TestTarget(t *testing.T) {
	file := kubeconfigOf(t, "administrator", masters)
	got, err := target(t, Options{Kubeconfig: file, Scenario: "mine", Tiers: catalogue.Tiers(), Image: "an/image"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Config == nil || got.Scenario != "mine" || got.Provider != ProviderName || got.Image != "an/image" || got.Config.WarningHandler != (rest.NoWarnings{}) || got.Times != cluster.RealTimes() {
		t.Errorf("target %+v", got)
	}
	t.Setenv("KUBECONFIG", file)
	if got, err := target(t, Options{Tiers: static}); err != nil || got.Scenario != "" {
		t.Errorf("scenario %q, error %v", got.Scenario, err)
	}
}

// TestBootstrapperWithoutRight: without the bootstrapper's permission the check is inconclusive and names it; with the
// permission it passes.
func TestBootstrapperWithoutRight(t *testing.T) {
	createInfrastructure(t, "edge-7")
	const id = "SNO-APP-003"
	file := kubeconfigOf(t, "administrator", masters)
	runCheck := func() report.Result {
		t.Helper()
		got, err := target(t, Options{Kubeconfig: file, Image: "an/image", Tiers: []catalogue.Tier{catalogue.Scheduled}})
		if err != nil {
			t.Fatal(err)
		}
		got.Times = cluster.SimulatedTimes()
		run, err := runner.New(t.Context(), got, runner.Selection{Tiers: []catalogue.Tier{catalogue.Scheduled}, IDs: []string{id}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = run.Close(t.Context()) }()
		if scenario := run.Report().Scenario; scenario != "edge-7" {
			t.Errorf("the report is of %q, want the infrastructure name", scenario)
		}
		if err := run.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		result, err := run.Result(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	if got := runCheck(); got.Status != report.Inconclusive || !strings.Contains(got.Reason, "may not create certificatesigningrequests.certificates.k8s.io") {
		t.Errorf("without the right: %s, %s", got.Status, got.Reason)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "node-bootstrapper"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-bootstrapper"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "openshift-machine-config-operator", Name: "node-bootstrapper"}},
	}
	if err := admin(t).Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	if got := runCheck(); got.Status != report.Passed {
		t.Errorf("with the right: %s, %s %+v", got.Status, got.Reason, got.Evidence)
	}
}

// TestLimit sends with clients of one configuration and of its copies; together they stay below the limit.
func TestLimit(t *testing.T) {
	var mu sync.Mutex
	var times []time.Time
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		times = append(times, time.Now())
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL, QPS: 1000, Burst: 1000}
	limit(config)
	impersonating := rest.CopyConfig(config)
	impersonating.Impersonate.UserName = "another"
	var group sync.WaitGroup
	began := time.Now()
	for _, config := range []*rest.Config{config, rest.CopyConfig(config), impersonating} {
		set, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		for range requestsPerSecond {
			group.Go(func() { _, _ = set.CoreV1().Pods("x").Get(t.Context(), "x", metav1.GetOptions{}) })
		}
	}
	group.Wait()
	// The burst is not delayed.
	want := time.Duration(3*requestsPerSecond-requestsAtOnce) * time.Second / requestsPerSecond
	if took := time.Since(began); took < want-want/10 {
		t.Errorf("%d requests of three clients took %s, want about %s", len(times), took, want)
	}
}

// TestLimitEndsInTime: a request that would be sent too late fails when its context ends, not before.
func TestLimitEndsInTime(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	// The limit of one request in 1000 s is used up.
	limiter := flowcontrol.NewTokenBucketRateLimiter(0.001, 1)
	limiter.Accept()
	sender := &http.Client{Transport: &limited{next: http.DefaultTransport, limiter: limiter}}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := sender.Do(request)
	if err == nil {
		_ = answer.Body.Close()
	}
	if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil {
		t.Errorf("the request ended with %v, its context with %v", err, ctx.Err())
	}
}

// Machines are counted; of a kind that is not served any more there are none. Others, such as Etcd, never were served.
func TestReadMachines(t *testing.T) {
	kept := admin(t)
	count := func(want int, served bool) {
		t.Helper()
		state, err := cluster.Read(t.Context(), kept, nil)
		if err != nil {
			t.Fatal(err)
		}
		if state.Machines != want || state.Missing["machines.machine.openshift.io"] == served || !state.Missing["etcds.operator.openshift.io"] {
			t.Errorf("%d Machines, want %d; not served: %v", state.Machines, want, state.Missing)
		}
	}
	count(0, true)
	for _, name := range []string{"master-0", "worker-0"} {
		machine := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine", "metadata": map[string]any{"name": name}}}
		if err := kept.Create(t.Context(), machine); err != nil {
			t.Fatal(err)
		}
	}
	count(2, true)
	definition := anyKind("machine.openshift.io", "v1beta1", "Machine")
	if err := kept.Delete(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	gone := func(ctx context.Context) (bool, error) {
		list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "machine.openshift.io/v1beta1", Kind: "MachineList"}}
		return apierrors.IsNotFound(kept.List(ctx, list)), nil
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, gone); err != nil {
		t.Fatal(err)
	}
	count(0, false)
}
