package patchtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// startTimeout is generous: several test binaries start at once on a small machine.
const startTimeout = 2 * time.Minute

// Options say what the API server is started with.
type Options struct {
	// CRDs names the CustomResourceDefinitions to install from github.com/openshift/api.
	CRDs []string
	// Flags are additional flags of kube-apiserver, without the leading dashes.
	Flags map[string]string
	// Program is started in kube-apiserver's place, with its arguments; empty for kube-apiserver itself.
	Program string
	// Output is where kube-apiserver and etcd write their logs; nil for nowhere.
	Output io.Writer
}

// APIServer is a running etcd and kube-apiserver with an audit log. There are no other controllers: nothing reconciles, and a
// deleted namespace keeps its objects.
type APIServer struct {
	environment *envtest.Environment
	folder      string
	audit       audit
	scheme      *runtime.Scheme
	admin       func() (client.WithWatch, error)
}

// StartAPIServer starts an API server for one test, which stops it at its end. Most tests want a Shared one.
func StartAPIServer(t testing.TB, options Options) *APIServer {
	t.Helper()
	s, err := start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	return s
}

// Shared is one API server for all tests of a binary. It is started by the first test that asks for it.
type Shared struct {
	options Options

	mu     sync.Mutex
	server *APIServer
	err    error
}

// NewShared starts nothing yet.
func NewShared(options Options) *Shared { return &Shared{options: options} }

// Main runs the tests of the binary, stops the API server if one was started, also when the run is interrupted, and returns
// what to pass to os.Exit.
func (s *Shared) Main(m *testing.M) int {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		_ = s.stop() // there is nobody left to tell
		os.Exit(130)
	}()
	code := m.Run()
	signal.Stop(interrupted)
	if err := s.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the API server:", err)
		return max(code, 1)
	}
	return code
}

// Server is the running API server. Without the programs to run it, the test fails and says what to do.
func (s *Shared) Server(t testing.TB) *APIServer {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil && s.err == nil {
		// Not the test's own context: the server outlives the first test.
		s.server, s.err = start(context.WithoutCancel(t.Context()), s.options)
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.server
}

func (s *Shared) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		return nil
	}
	err := s.server.stop()
	s.server = nil
	return err
}

func start(ctx context.Context, options Options) (_ *APIServer, err error) {
	binaries, err := Binaries()
	if err != nil {
		return nil, err
	}
	log.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	for _, install := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, configv1.Install, operatorv1.Install} {
		if err := install(scheme); err != nil {
			return nil, fmt.Errorf("building a scheme: %w", err)
		}
	}
	folder, err := os.MkdirTemp("", "sno-patchtest-")
	if err != nil {
		return nil, fmt.Errorf("making room for the audit log: %w", err)
	}
	s := &APIServer{folder: folder, scheme: scheme, environment: &envtest.Environment{
		Scheme: scheme, ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: startTimeout, ControlPlaneStopTimeout: startTimeout,
		CRDInstallOptions: envtest.CRDInstallOptions{MaxTime: startTimeout},
	}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	if len(options.CRDs) > 0 {
		module, err := APIModuleDir(ctx)
		if err != nil {
			return nil, err
		}
		for _, name := range options.CRDs {
			manifest, err := CRDManifest(module, name)
			if err != nil {
				return nil, err
			}
			s.environment.CRDDirectoryPaths = append(s.environment.CRDDirectoryPaths, manifest)
		}
	}
	policy := filepath.Join(folder, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, fmt.Errorf("writing the audit policy: %w", err)
	}
	server := s.environment.ControlPlane.GetAPIServer()
	server.Path = options.Program
	if server.Path == "" {
		server.Path = filepath.Join(binaries, "kube-apiserver")
	}
	server.Out, server.Err = options.Output, options.Output
	s.environment.ControlPlane.Etcd = &envtest.Etcd{Path: filepath.Join(binaries, "etcd"), Out: options.Output, Err: options.Output}
	server.Configure().
		Set("audit-policy-file", policy).
		Set("audit-log-path", s.auditLog()).
		// A request is in the log before it is looked at, so whoever has an answer finds the request there.
		Set("audit-log-mode", "blocking")
	for name, value := range options.Flags {
		server.Configure().Set(name, value)
	}
	if _, err := s.environment.Start(); err != nil {
		return nil, fmt.Errorf("starting an API server: %w", err)
	}
	s.admin = sync.OnceValues(func() (client.WithWatch, error) { return s.newClient(adminUser, "system:masters") })
	return s, nil
}

func (s *APIServer) stop() error {
	return errors.Join(s.environment.Stop(), os.RemoveAll(s.folder))
}

// adminUser is the name of the user that Admin writes as.
const adminUser = "patchtest-admin"

// Scheme knows the types of Kubernetes and of OpenShift's config and operator groups.
func (s *APIServer) Scheme() *runtime.Scheme { return s.scheme }

// EtcdURL is where the etcd answers in which the API server keeps everything, without certificates. Its history has every version
// of every object in the one order in which they came, also across a restart of the API server.
func (s *APIServer) EtcdURL() string { return s.environment.ControlPlane.Etcd.URL.String() }

// Config is how the named user connects, with a client certificate and with its name as user agent. Without groups it may do
// nothing until Grant.
func (s *APIServer) Config(t testing.TB, user string, groups ...string) *rest.Config {
	t.Helper()
	config, err := s.config(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func (s *APIServer) config(user string, groups ...string) (*rest.Config, error) {
	authenticated, err := s.environment.AddUser(envtest.User{Name: user, Groups: groups}, &rest.Config{UserAgent: user, QPS: -1})
	if err != nil {
		return nil, fmt.Errorf("adding the user %s: %w", user, err)
	}
	return authenticated.Config(), nil
}

func (s *APIServer) newClient(user string, groups ...string) (client.WithWatch, error) {
	config, err := s.config(user, groups...)
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: s.scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", user, err)
	}
	return c, nil
}

// Client talks to the API server as the named user.
func (s *APIServer) Client(t testing.TB, user string, groups ...string) client.WithWatch {
	t.Helper()
	c, err := s.newClient(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Admin talks to the API server as somebody who may do everything.
func (s *APIServer) Admin(t testing.TB) client.WithWatch {
	t.Helper()
	c, err := s.admin()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Namespace makes a namespace for the test.
func (s *APIServer) Namespace(t testing.TB) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := s.Admin(t).Create(t.Context(), namespace); err != nil {
		t.Fatalf("making a namespace: %v", err)
	}
	return namespace.Name
}

// Grant gives the user cluster-wide permissions and returns when the API server knows of them.
func (s *APIServer) Grant(t testing.TB, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	ctx, admin := t.Context(), s.Admin(t)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}, Rules: rules}
	if err := admin.Create(ctx, role); err != nil {
		t.Fatalf("granting to %s: %v", user, err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if err := admin.Create(ctx, binding); err != nil {
		t.Fatalf("granting to %s: %v", user, err)
	}
	for _, rule := range rules {
		if len(rule.Resources) == 0 || len(rule.APIGroups) == 0 || len(rule.Verbs) == 0 {
			continue
		}
		resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
		attributes := &authorizationv1.ResourceAttributes{
			Group: rule.APIGroups[0], Resource: resource, Subresource: subresource, Verb: rule.Verbs[0],
		}
		if len(rule.ResourceNames) > 0 {
			attributes.Name = rule.ResourceNames[0]
		}
		allowed := func(ctx context.Context) (bool, error) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: attributes}}
			err := admin.Create(ctx, review)
			return review.Status.Allowed, err
		}
		if err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, startTimeout, true, allowed); err != nil {
			t.Fatalf("waiting until %s may %s %s: %v", user, attributes.Verb, attributes.Resource, err)
		}
	}
}
