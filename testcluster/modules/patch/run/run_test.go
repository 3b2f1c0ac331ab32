// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/run"
	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/crds"
	"github.com/solonode/sno/testcluster/modules"
	"github.com/solonode/sno/topology"
)

var shared = apiserver.NewShared(apiserver.Options{CRDs: []string{crds.Infrastructures}})

func TestMain(m *testing.M) {
	apiserver.MaybeRunProgram(func(args []string) int { return run.Main("sample-controller", args, &sample{}) })
	os.Exit(shared.Main(m))
}

var (
	watched  = modules.Object("v1", "ConfigMap", "sample", "one")
	labelled = controller.Object{GroupVersionKind: watched.GroupVersionKind, Namespace: "sample", Labels: "selected=yes", MetadataOnly: true}
	optional = controller.Object{
		GroupVersionKind: schema.GroupVersionKind{Group: "sample.example.com", Version: "v1", Kind: "Optional"}, Name: "one", Optional: true,
	}
)

type sample struct{}

func (*sample) Name() string { return "sample" }

func (*sample) BindFlags(*flag.FlagSet) {}

func (*sample) Validate() error { return nil }

func (*sample) Objects() []controller.Object {
	return []controller.Object{controller.Infrastructure, watched, optional, labelled}
}

func (*sample) StatusNames() (prefix, object string) { return "Sample", "configmap/one" }

func (*sample) Reconciler(env controller.Environment) (controller.ReconcileFunc, error) {
	if env.Metrics == nil {
		return nil, errors.New("no metrics")
	}
	return func(ctx context.Context, cluster *topology.Cluster) (*unstructured.Unstructured, patch.Result, error) {
		_, one, err := controller.Read[corev1.ConfigMap](ctx, env.Reader, watched)
		if err != nil {
			return nil, patch.Result{}, err
		}
		maybe, _, err := controller.Read[unstructured.Unstructured](ctx, env.Reader, optional)
		if err != nil {
			return nil, patch.Result{}, err
		}
		data := ""
		if one != nil {
			data = one.Data["k"]
		}
		logr.FromContextOrDiscard(ctx).Info("Sample reconciled", "data", data, "optional", maybe != nil, "topology", cluster != nil)
		return nil, patch.Result{State: patch.InForce, Reason: patch.ReasonAsExpected, Message: "Read"}, nil
	}, nil
}

// sampleServer is an API server with the namespace and the service account of the sample.
type sampleServer struct {
	*testing.T
	server *apiserver.Server
	admin  client.WithWatch
	holder string // of the Lease when leaseLasts was last called
}

func newSampleServer(t *testing.T, server *apiserver.Server) *sampleServer {
	t.Helper()
	s := &sampleServer{T: t, server: server, admin: server.Admin(t)}
	s.must(s.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: watched.Namespace}}))
	s.account("controller")
	reads, creates := []string{"get", "list", "watch"}, []string{"create"}
	server.Grant(t, apiserver.AccountUser(watched.Namespace, "controller"),
		rule("coordination.k8s.io", "leases", "get", "create", "update"), rule("config.openshift.io", "infrastructures", reads...),
		rule("", "configmaps", reads...), rule(optional.Group, "optionals", reads...), rule("", "events", "create", "patch"),
		rule("authentication.k8s.io", "tokenreviews", creates...), rule("authorization.k8s.io", "subjectaccessreviews", creates...))
	return s
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

func (s *sampleServer) must(err error) {
	s.Helper()
	apiserver.NoError(s, err)
}

func (s *sampleServer) account(name string) string {
	s.Helper()
	serviceAccount := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: watched.Namespace, Name: name}}
	s.must(s.admin.Create(s.Context(), serviceAccount))
	request := &authenticationv1.TokenRequest{}
	s.must(s.admin.SubResource("token").Create(s.Context(), serviceAccount, request))
	return request.Status.Token
}

// start starts the sample with leader election. address replaces that of the API server unless it is empty.
func (s *sampleServer) start(address string, args ...string) *apiserver.Process {
	s.Helper()
	return apiserver.StartProgram(s, append([]string{
		"--kubeconfig=" + s.server.AccountKubeconfig(s, watched.Namespace, "controller", address),
		"--leader-elect-resource-namespace=" + watched.Namespace,
	}, args...)...)
}

func (s *sampleServer) setTopology(mode string) {
	s.Helper()
	u := controller.Infrastructure.Unstructured()
	u.Object["spec"] = map[string]any{}
	s.must(client.IgnoreAlreadyExists(s.admin.Create(s.Context(), u)))
	text := fmt.Sprintf(`{"status":{"controlPlaneTopology":%q,"infrastructureTopology":%q,"cpuPartitioning":"None"}}`, mode, mode)
	s.must(s.admin.Status().Patch(s.Context(), controller.Infrastructure.Unstructured(), client.RawPatch(types.MergePatchType, []byte(text))))
}

// leaseLasts returns a check that the Lease has the duration.
func (s *sampleServer) leaseLasts(seconds int32) func() error {
	return func() error {
		lease := &coordinationv1.Lease{}
		err := s.admin.Get(s.Context(), client.ObjectKey{Namespace: watched.Namespace, Name: "sample-controller.sno.solonode.github.io"}, lease)
		s.holder = ptr.Deref(lease.Spec.HolderIdentity, "")
		if got := ptr.Deref(lease.Spec.LeaseDurationSeconds, 0); err == nil && got != seconds {
			err = fmt.Errorf("%q holds the Lease for %d s", s.holder, got)
		}
		return err
	}
}

func (s *sampleServer) eventually(what string, check func() error) {
	s.Helper()
	apiserver.Eventually(s, what, check)
}

// ends waits until the process has ended by itself with exit code 0, and has said why, and checks that nobody holds the
// Lease.
func (s *sampleServer) ends(p *apiserver.Process, why string) {
	s.Helper()
	p.WaitForEnd(why)
	if err := s.leaseLasts(1)(); err != nil || s.holder != "" {
		s.Errorf("the Lease was not released, %q holds it: %v", s.holder, err)
	}
}

// reconciles makes the change, waits until the process has reconciled, and returns how often it did.
func (s *sampleServer) reconciles(p *apiserver.Process, change func()) int {
	s.Helper()
	count := func() int { return strings.Count(p.Logs(), "Sample reconciled") }
	before := count()
	change()
	s.eventually("it has reconciled", func() error {
		if count() == before {
			return errors.New("it has not")
		}
		return nil
	})
	return count() - before
}

func (s *sampleServer) serveOptional() {
	s.Helper()
	s.must(s.admin.Create(s.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "optionals." + optional.Group},
		"spec": map[string]any{
			"group": optional.Group, "scope": "Cluster", "names": map[string]any{"plural": "optionals", "singular": "optional", "kind": optional.Kind},
			"versions": []any{map[string]any{
				"name": optional.Version, "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
			}},
		},
	}}))
	s.eventually("the optional kind is served", func() error { return s.admin.Create(s.Context(), optional.Unstructured()) })
}

func get(ctx context.Context, url, token string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	answer, err := insecure.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body), err
}

// TestRun covers probes, authorization of metrics, leader election and the release of the Lease.
func TestRun(t *testing.T) {
	s, ctx := newSampleServer(t, shared.Server(t)), t.Context()

	proxy := s.server.Proxy(t)
	proxy.Cut()
	first := s.start(proxy.Address(), "--leader-elect=false")
	first.WaitForLog(`"API server does not answer" cause=`)
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusInternalServerError} {
		if code, body, err := first.Probe(path); err != nil || code != want {
			t.Errorf("%s without an API server: %d %s %v, want %d", path, code, body, err, want)
		}
	}
	first.WaitForLog("waiting for the API server")
	proxy.Restore(t)
	// Without objects there is no event; it reconciles all the same.
	first.WaitForLog(`data="" optional=false topology=false`)
	first.Stop()

	s.setTopology("SingleReplica")
	health, metrics := apiserver.FreeAddress(t), apiserver.FreeAddress(t)
	args := []string{"--health-probe-bind-address=" + health, "--metrics-bind-address=" + metrics, "--metrics-secure"}
	p := s.start("", args...)
	answers := func(url, token string, want int, text string) func() error {
		return func() error {
			code, body, err := get(ctx, url, token)
			if err == nil && (code != want || !strings.Contains(body, text)) {
				err = fmt.Errorf("%s answers %d %s, want %d with %q", url, code, body, want, text)
			}
			return err
		}
	}
	ready := answers("http://"+health+"/readyz", "", http.StatusOK, "")
	s.eventually("it is ready", ready)
	s.must(answers("http://"+health+"/healthz", "", http.StatusOK, "")())

	reader, unauthorized := s.account("reader"), s.account("unauthorized")
	s.server.Grant(t, "system:serviceaccount:sample:reader", rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}})
	url := "https://" + metrics + "/metrics"
	s.eventually("metrics need a token", answers(url, "", http.StatusUnauthorized, ""))
	s.must(answers(url, unauthorized, http.StatusForbidden, "")())
	connection, err := (&tls.Dialer{Config: &tls.Config{NextProtos: []string{"h2", "http/1.1"}, InsecureSkipVerify: true}}).DialContext(t.Context(), "tcp", metrics)
	if err != nil {
		t.Fatal(err)
	}
	if got := connection.(*tls.Conn).ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("the server of metrics speaks %q", got)
	}
	if err := connection.Close(); err != nil {
		t.Fatal(err)
	}
	s.eventually("a reader gets the metrics", answers(url, reader, http.StatusOK, "sno_build_info"))

	s.eventually("it leads with the durations of one node", s.leaseLasts(270))
	p.WaitForLog(`data="" optional=false topology=true`)
	one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "sample", Name: "one"}, Data: map[string]string{"k": "first"}}
	s.must(s.admin.Create(ctx, one))
	p.WaitForLog(`data="first" optional=false topology=true`)

	// A MetadataOnly object triggers a reconciliation unless only its data changes.
	selected := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "sample", Name: "selected", Labels: map[string]string{"selected": "yes"}}}
	for _, change := range []func(){
		func() { s.must(s.admin.Create(ctx, selected)) },
		func() {
			selected.Data = map[string]string{"k": "v"}
			s.must(s.admin.Update(ctx, selected))
			selected.Labels["and"] = "more"
			s.must(s.admin.Update(ctx, selected))
		},
		func() { s.must(s.admin.Delete(ctx, selected)) },
	} {
		if n := s.reconciles(p, change); n != 1 {
			t.Errorf("it reconciled %d times", n)
		}
	}

	update := func(data string) {
		t.Helper()
		one.Data["k"] = data
		s.must(s.admin.Update(ctx, one))
		p.WaitForLog(`data="` + data + `"`)
	}
	for i, mode := range []string{"HighlyAvailable", "SingleReplica"} {
		s.setTopology(mode)
		s.ends(p, "leader election follows the topology "+mode)
		p = s.start("", args...)
		s.eventually("it leads with the durations of "+mode, s.leaseLasts([]int32{137, 270}[i]))
		update("round-" + mode)
		s.eventually("it is ready", ready)
	}

	s.serveOptional()
	s.ends(p, "the cluster serves kinds that it did not serve before")
	p = s.start("", args...)
	p.WaitForLog(`optional=true`)
	s.must(s.admin.Delete(ctx, controller.Infrastructure.Unstructured()))
	update("without-infrastructure")
	p.WaitForLog(`data="without-infrastructure" optional=true topology=true`)

	p.Stop()
	if err := s.leaseLasts(1)(); err != nil || s.holder != "" {
		t.Errorf("the Lease was not released, %q holds it: %v", s.holder, err)
	}
}
