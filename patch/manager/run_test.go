package manager

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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/patchtest"
)

var shared = patchtest.NewShared(patchtest.Options{CRDs: []string{patchtest.Infrastructures}})

func TestMain(m *testing.M) {
	patchtest.BeProgram(func(args []string) int { return Main("sample-controller", args, &sample{}) })
	os.Exit(shared.Main(m))
}

var (
	errSample = errors.New("bad value of the sample's flag")
	watched   = Object{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "sample", Name: "one"}
	optional  = Object{
		GroupVersionKind: schema.GroupVersionKind{Group: "sample.example.com", Version: "v1", Kind: "Optional"}, Name: "one", Optional: true,
	}
	// Of the same kind as watched, in another selection.
	labelled = Object{GroupVersionKind: watched.GroupVersionKind, Namespace: "sample", Labels: "told=yes", MetadataOnly: true}
)

// sample is a module that says in the log what it sees of one ConfigMap.
type sample struct{ flag string }

func (*sample) Name() string { return "sample" }

func (s *sample) BindFlags(flags *flag.FlagSet) { flags.StringVar(&s.flag, "sample", "", "A flag.") }

func (s *sample) Validate() error {
	if s.flag == "bad" {
		return fmt.Errorf("--sample: %w", errSample)
	}
	return nil
}

func (*sample) Objects() []Object { return []Object{Infrastructure, watched, optional, labelled} }

// Look is nobody's here: Setup makes a controller of its own.
func (*sample) Look(Environment) (Look, error) { return nil, nil }

func (s *sample) Setup(mgr ctrl.Manager, env Environment) error {
	if env.Metrics == nil {
		return errors.New("no metrics")
	}
	var topology LastTopology
	look := func(ctx context.Context) (*unstructured.Unstructured, patch.Result, error) {
		cluster, err := topology.Read(ctx, env.Reader)
		if err != nil {
			return nil, patch.Result{}, err
		}
		_, one, err := Read[corev1.ConfigMap](ctx, env.Reader, watched)
		if err != nil {
			return nil, patch.Result{}, err
		}
		maybe, _, err := Read[unstructured.Unstructured](ctx, env.Reader, optional)
		if err != nil {
			return nil, patch.Result{}, err
		}
		data := ""
		if one != nil {
			data = one.Data["k"]
		}
		logr.FromContextOrDiscard(ctx).Info("Sample looked", "data", data, "optional", maybe != nil, "topology", cluster != nil)
		return nil, patch.Result{State: patch.InForce, Reason: patch.ReasonAsExpected, Message: "Seen"}, nil
	}
	controller := &Controller{Look: look, Reporter: env.Reporter(mgr, s.Name(), "Sample", "configmap/one")}
	return controller.Watch(mgr, s, env)
}

// account makes a service account and returns its token.
func account(t *testing.T, admin client.Client, name string) string {
	t.Helper()
	serviceAccount := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: watched.Namespace, Name: name}}
	if err := admin.Create(t.Context(), serviceAccount); err != nil {
		t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{}
	if err := admin.SubResource("token").Create(t.Context(), serviceAccount, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// install makes the sample's namespace and its account, with its rights.
func install(t *testing.T, server *patchtest.APIServer) {
	t.Helper()
	admin := server.Admin(t)
	if err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: watched.Namespace}}); err != nil {
		t.Fatal(err)
	}
	account(t, admin, "controller")
	server.Grant(t, patchtest.AccountUser(watched.Namespace, "controller"),
		rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"}},
		rbacv1.PolicyRule{APIGroups: []string{"config.openshift.io"}, Resources: []string{"infrastructures"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{optional.Group}, Resources: []string{"optionals"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}})
}

// infrastructure makes the Infrastructure object, without a topology.
func infrastructure(t *testing.T, admin client.Client) {
	t.Helper()
	u := Infrastructure.Unstructured()
	u.Object["spec"] = map[string]any{}
	if err := admin.Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}
}

func setTopology(t *testing.T, admin client.Client, mode string) {
	t.Helper()
	text := fmt.Sprintf(`{"status":{"controlPlaneTopology":%q,"infrastructureTopology":%q,"cpuPartitioning":"None"}}`, mode, mode)
	if err := admin.Status().Patch(t.Context(), Infrastructure.Unstructured(), client.RawPatch(types.MergePatchType, []byte(text))); err != nil {
		t.Fatal(err)
	}
}

// leads checks how long the sample's Lease is held for, and says by whom.
func leads(ctx context.Context, admin client.Client, seconds int32, holder *string) func() error {
	return func() error {
		lease := &coordinationv1.Lease{}
		err := admin.Get(ctx, client.ObjectKey{Namespace: watched.Namespace, Name: "sample-controller.sno.solonode.github.io"}, lease)
		*holder = ptr.Deref(lease.Spec.HolderIdentity, "")
		if got := ptr.Deref(lease.Spec.LeaseDurationSeconds, 0); err == nil && got != seconds {
			err = fmt.Errorf("%q holds the Lease for %d s", *holder, got)
		}
		return err
	}
}

// serveOptional makes the API server serve the optional kind, and makes one object of it.
func serveOptional(t *testing.T, admin client.Client) {
	t.Helper()
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "optionals." + optional.Group},
		"spec": map[string]any{
			"group": optional.Group, "scope": "Cluster", "names": map[string]any{"plural": "optionals", "singular": "optional", "kind": optional.Kind},
			"versions": []any{map[string]any{
				"name": optional.Version, "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
			}},
		},
	}}
	if err := admin.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	patchtest.Eventually(t, "the optional kind is served", func() error { return admin.Create(t.Context(), optional.Unstructured()) })
}

// One process from its start to its end: probes, metrics for those who may see them, leader election that follows the
// topology while the modules go on, and a shutdown that gives up the Lease.
func TestRun(t *testing.T) {
	server := shared.Server(t)
	admin, ctx := server.Admin(t), t.Context()
	install(t, server)
	kubeconfig := "--kubeconfig=" + server.AccountKubeconfig(t, watched.Namespace, "controller", "")

	// The first look waits for nothing: where no object exists there is no event, and that is worth saying.
	first := patchtest.Start(t, kubeconfig, "--leader-elect=false")
	first.Says(`data="" optional=false topology=false`)
	first.Stop()

	infrastructure(t, admin)
	setTopology(t, admin, "SingleReplica")
	health, metrics := patchtest.FreeAddress(t), patchtest.FreeAddress(t)
	p := patchtest.Start(t, kubeconfig, "--leader-elect-resource-namespace=sample",
		"--health-probe-bind-address="+health, "--metrics-bind-address="+metrics, "--metrics-secure")

	get := func(url, token string) (int, string, error) {
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
	answers := func(url, token string, want int, text string) func() error {
		return func() error {
			code, body, err := get(url, token)
			if err == nil && (code != want || !strings.Contains(body, text)) {
				err = fmt.Errorf("%s answers %d %s, want %d with %q", url, code, body, want, text)
			}
			return err
		}
	}
	patchtest.Eventually(t, "it is ready", answers("http://"+health+"/readyz", "", http.StatusOK, ""))
	if err := answers("http://"+health+"/healthz", "", http.StatusOK, "")(); err != nil {
		t.Error(err)
	}

	// Metrics: over TLS, to those who prove who they are and may read them.
	reader, stranger := account(t, admin, "reader"), account(t, admin, "stranger")
	server.Grant(t, "system:serviceaccount:sample:reader", rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}})
	url := "https://" + metrics + "/metrics"
	patchtest.Eventually(t, "somebody without a token sees nothing", answers(url, "", http.StatusUnauthorized, ""))
	if err := answers(url, stranger, http.StatusForbidden, "")(); err != nil {
		t.Error(err)
	}
	patchtest.Eventually(t, "a reader sees the metrics", answers(url, reader, http.StatusOK, "sno_build_info"))

	var holder string
	patchtest.Eventually(t, "it leads with the durations of one node", leads(ctx, admin, 270, &holder))
	p.Says(`data="" optional=false topology=true`)

	one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "sample", Name: "one"}, Data: map[string]string{"k": "first"}}
	if err := admin.Create(ctx, one); err != nil {
		t.Fatal(err)
	}
	p.Says(`data="first" optional=false topology=true`)

	// Of what is MetadataOnly its coming, its labels and its going are told, and what is in it is not.
	looks := func() int { return strings.Count(p.Said(), "Sample looked") }
	told := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "sample", Name: "told", Labels: map[string]string{"told": "yes"}}}
	for _, change := range []func() error{
		func() error { return admin.Create(ctx, told) },
		func() error {
			told.Data = map[string]string{"k": "v"}
			if err := admin.Update(ctx, told); err != nil {
				return err
			}
			told.Labels["and"] = "more"
			return admin.Update(ctx, told)
		},
		func() error { return admin.Delete(ctx, told) },
	} {
		before := looks()
		if err := change(); err != nil {
			t.Fatal(err)
		}
		patchtest.Eventually(t, "it is told", func() error {
			if looks() == before {
				return errors.New("it has not looked")
			}
			return nil
		})
		if got := looks() - before; got != 1 {
			t.Errorf("it looked %d times", got)
		}
	}

	for round, step := range []struct {
		mode    string
		seconds int32
	}{{"HighlyAvailable", 137}, {"SingleReplica", 270}} {
		setTopology(t, admin, step.mode)
		patchtest.Eventually(t, "it leads with the durations of "+step.mode, leads(ctx, admin, step.seconds, &holder))
		one.Data["k"] = fmt.Sprint("round-", round)
		if err := admin.Update(ctx, one); err != nil {
			t.Fatal(err)
		}
		p.Says(fmt.Sprintf(`data="round-%d"`, round))
		patchtest.Eventually(t, "it is ready", answers("http://"+health+"/readyz", "", http.StatusOK, ""))
	}
	if n := strings.Count(p.Said(), "Leader election follows the topology"); n != 2 {
		t.Errorf("the leader election changed %d times, want 2", n)
	}

	// A kind that it did without comes to be served, with an object of it.
	serveOptional(t, admin)
	p.Says(`optional=true`)
	if err := admin.Delete(ctx, Infrastructure.Unstructured()); err != nil {
		t.Fatal(err)
	}
	one.Data["k"] = "without-infrastructure"
	if err := admin.Update(ctx, one); err != nil {
		t.Fatal(err)
	}
	p.Says(`data="without-infrastructure" optional=true topology=true`)

	p.Stop()
	if err := leads(ctx, admin, 1, &holder)(); err != nil || holder != "" {
		t.Errorf("the Lease was not released, %q holds it: %v", holder, err)
	}
}
