package manager

import (
	"net/http"
	"net/http/httptest"
	"path"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/solonode/sno/patch/patchtest"
)

const asker = "system:metrics-asker"

// guarded is a page behind the filter, which asks with no more rights than a controller has.
func guarded(t *testing.T, server *patchtest.APIServer) http.Handler {
	t.Helper()
	server.Grant(t, asker,
		rbacv1.PolicyRule{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
	)
	return filtered(t, server.Config(t, asker))
}

func filtered(t *testing.T, config *rest.Config) http.Handler {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	filter, err := authorized(config, client)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	}))
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

func get(handler http.Handler, method, target, authorization string) int {
	request := httptest.NewRequest(method, target, nil)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder.Code
}

// token makes a service account and a token of it; paths are what it may get.
func token(t *testing.T, server *patchtest.APIServer, namespace, name string, paths ...string) string {
	t.Helper()
	admin := server.Admin(t)
	if err := admin.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}); err != nil {
		t.Fatal(err)
	}
	if len(paths) > 0 {
		server.Grant(t, "system:serviceaccount:"+namespace+":"+name, rbacv1.PolicyRule{NonResourceURLs: paths, Verbs: []string{"get"}})
	}
	clientset, err := kubernetes.NewForConfig(server.Config(t, "token-maker", "system:masters"))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := clientset.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Token
}

func TestAuthorized(t *testing.T) {
	server := shared.Server(t)
	namespace := server.Namespace(t)
	handler := guarded(t, server)
	may, mayNot := token(t, server, namespace, "may", "/metrics"), token(t, server, namespace, "may-not")
	for _, test := range []struct {
		name, method, path, authorization string
		want                              int
	}{
		{"no token", http.MethodGet, "/metrics", "", http.StatusUnauthorized},
		{"another scheme", http.MethodGet, "/metrics", "Basic " + may, http.StatusUnauthorized},
		{"empty token", http.MethodGet, "/metrics", "Bearer ", http.StatusUnauthorized},
		{"no such token", http.MethodGet, "/metrics", "Bearer none", http.StatusUnauthorized},
		{"damaged token", http.MethodGet, "/metrics", "Bearer " + may[:len(may)-4], http.StatusUnauthorized},
		{"no right", http.MethodGet, "/metrics", "Bearer " + mayNot, http.StatusForbidden},
		{"right", http.MethodGet, "/metrics", "Bearer " + may, http.StatusTeapot},
		{"right to another path", http.MethodGet, "/debug", "Bearer " + may, http.StatusForbidden},
		{"right to another verb", http.MethodPost, "/metrics", "Bearer " + may, http.StatusForbidden},
	} {
		t.Run(test.name, func(t *testing.T) {
			// Twice: the second answer is the remembered one.
			for range 2 {
				if got := get(handler, test.method, test.path, test.authorization); got != test.want {
					t.Errorf("got %d, want %d", got, test.want)
				}
			}
		})
	}
}

// TestAuthorizedAsksSeldom: a scraper that comes again and again costs the API server one review of each kind.
func TestAuthorizedAsksSeldom(t *testing.T) {
	server := shared.Server(t)
	guarded(t, server)
	may := token(t, server, server.Namespace(t), "scraper", "/metrics")
	config := server.Config(t, asker)
	var asked []string
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			asked = append(asked, path.Base(r.URL.Path))
			return next.RoundTrip(r)
		})
	})
	handler := filtered(t, config)
	for range 20 {
		if got := get(handler, http.MethodGet, "/metrics", "Bearer "+may); got != http.StatusTeapot {
			t.Fatalf("got %d", got)
		}
	}
	if diff := cmp.Diff([]string{"tokenreviews", "subjectaccessreviews"}, asked); diff != "" {
		t.Errorf("reviews (-want +got):\n%s", diff)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestAuthorizedNobodyToAsk: whoever cannot be asked about is not let in, and the answer is not remembered.
func TestAuthorizedNobodyToAsk(t *testing.T) {
	server := shared.Server(t)
	namespace := server.Namespace(t)
	may := token(t, server, namespace, "may", "/metrics")

	gone := rest.CopyConfig(server.Config(t, asker))
	gone.Host = "127.0.0.1:1"
	gone.Timeout = 5 * time.Second
	if got := get(filtered(t, gone), http.MethodGet, "/metrics", "Bearer "+may); got != http.StatusServiceUnavailable {
		t.Errorf("API server away: got %d", got)
	}
	handler := filtered(t, server.Config(t, "without-rights-yet"))
	if got := get(handler, http.MethodGet, "/metrics", "Bearer "+may); got != http.StatusServiceUnavailable {
		t.Errorf("not allowed to ask: got %d", got)
	}
	server.Grant(t, "without-rights-yet", rbacv1.PolicyRule{
		APIGroups: []string{"authentication.k8s.io", "authorization.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"create"},
	})
	if got := get(handler, http.MethodGet, "/metrics", "Bearer "+may); got != http.StatusTeapot {
		t.Errorf("allowed to ask now: got %d", got)
	}
}

func TestUnthrottled(t *testing.T) {
	given := &rest.Config{Host: "h"}
	if got := unthrottled(given); got.QPS >= 0 || given.QPS != 0 {
		t.Errorf("QPS is %v, the given config's %v; want none, and the given config as it was", got.QPS, given.QPS)
	}
	if got := unthrottled(&rest.Config{QPS: 7}); got.QPS != 7 {
		t.Errorf("QPS that somebody set is %v, want 7", got.QPS)
	}
}
