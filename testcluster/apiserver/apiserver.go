// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/testcluster/embedded"
)

// Options are those of an API server.
type Options struct {
	// CRDs names CustomResourceDefinitions of github.com/openshift/api to install, see package crds.
	CRDs []string
	// Flags are additional flags of kube-apiserver, without leading dashes.
	Flags map[string]string
}

// Server is a running etcd and kube-apiserver with an audit log, without controllers.
type Server struct {
	cluster *embedded.Cluster
	audit   auditLog
	admin   client.WithWatch
}

// Start starts an API server for one test. Most tests use a Shared one.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	s, err := start(t.Context(), options)
	NoError(t, err)
	t.Cleanup(func() { NoError(t, s.cluster.Stop()) })
	return s
}

// Shared is an API server for all tests of a binary. The first test that needs it starts it.
type Shared struct {
	options Options

	mu     sync.Mutex
	server *Server
	err    error
}

// NewShared returns a Shared that is not started.
func NewShared(options Options) *Shared { return &Shared{options: options} }

// Main runs the tests, stops the API server, and returns the exit code. After an interrupt the API server ends with the
// process.
func (s *Shared) Main(m *testing.M) int {
	code := m.Run()
	if s.server == nil {
		return code
	}
	if err := s.server.cluster.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the API server:", err)
		return max(code, 1)
	}
	return code
}

// Server returns the running API server, and fails the test if it cannot start.
func (s *Shared) Server(t testing.TB) *Server {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil && s.err == nil {
		s.server, s.err = start(t.Context(), s.options)
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.server
}

func start(ctx context.Context, options Options) (*Server, error) {
	log.SetLogger(logr.Discard())
	config := embedded.Config{Bare: true, CRDs: append([]string{}, options.CRDs...)}
	var err error
	if config.Assets, err = assets.Ensure(ctx, os.Stderr); err != nil {
		return nil, fmt.Errorf("getting kube-apiserver and etcd: %w", err)
	}
	for name, value := range options.Flags {
		config.APIServer = append(config.APIServer, "--"+name+"="+value)
	}
	// It outlives the test if it is shared, and clean-ups of the test use it.
	cluster, err := embedded.Start(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, fmt.Errorf("starting an API server: %w", err)
	}
	s := &Server{cluster: cluster, audit: auditLog{path: cluster.AuditLogPath()}}
	if s.admin, err = s.newClient("test-admin", "system:masters"); err != nil {
		return nil, errors.Join(err, cluster.Stop())
	}
	return s, nil
}

// Scheme returns the scheme with the types of Kubernetes and of OpenShift's config and operator groups.
func (s *Server) Scheme() *runtime.Scheme { return s.cluster.Client().Scheme() }

// EtcdURL returns the address of the etcd, whose history has all versions of all objects. It needs no certificates.
func (s *Server) EtcdURL() string { return s.cluster.EtcdURL() }

// Restart kills the API server and starts it again, with the same address and data.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	NoError(t, s.cluster.KillAPIServer())
	NoError(t, s.cluster.StartAPIServer(t.Context()))
}

// Config returns a config for a user with a client certificate. Without groups the user has no rights until Grant.
func (s *Server) Config(t testing.TB, user string, groups ...string) *rest.Config {
	t.Helper()
	config, err := s.config(user, groups...)
	NoError(t, err)
	return config
}

func (s *Server) config(user string, groups ...string) (*rest.Config, error) {
	config, err := s.cluster.ConfigForUser(user, groups...)
	if err != nil {
		return nil, fmt.Errorf("adding the user %s: %w", user, err)
	}
	config.UserAgent = user
	return config, nil
}

func (s *Server) newClient(user string, groups ...string) (client.WithWatch, error) {
	config, err := s.config(user, groups...)
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: s.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("creating a client for %s: %w", user, err)
	}
	return c, nil
}

// Client returns a client for a user.
func (s *Server) Client(t testing.TB, user string, groups ...string) client.WithWatch {
	t.Helper()
	c, err := s.newClient(user, groups...)
	NoError(t, err)
	return c
}

// Admin returns a client with all rights.
func (s *Server) Admin(testing.TB) client.WithWatch { return s.admin }

// InstallCRDs installs more CustomResourceDefinitions of github.com/openshift/api.
func (s *Server) InstallCRDs(t testing.TB, names ...string) {
	t.Helper()
	NoError(t, s.cluster.InstallCRDs(t.Context(), names, nil))
}

// Namespace creates a namespace for the test.
func (s *Server) Namespace(t testing.TB) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := s.Admin(t).Create(t.Context(), namespace); err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}
	return namespace.Name
}

// Grant grants the user cluster-wide permissions and waits until they are effective.
func (s *Server) Grant(t testing.TB, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}, Rules: rules}
	err := s.Admin(t).Create(t.Context(), role)
	if err == nil {
		err = s.Admin(t).Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		})
	}
	if err != nil {
		t.Fatalf("granting to %s: %v", user, err)
	}
	for _, rule := range rules {
		if len(rule.Resources) == 0 || len(rule.APIGroups) == 0 || len(rule.Verbs) == 0 {
			continue
		}
		resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
		right := [6]string{"", rule.APIGroups[0], resource, subresource, strings.Join(rule.ResourceNames, ""), rule.Verbs[0]}
		Eventually(t, "the permissions of "+user+" are effective", func() error {
			if !s.May(t, user, right) {
				return fmt.Errorf("not permitted: %v", right)
			}
			return nil
		})
	}
}

// May reports whether a user, in the groups of a service account, has a right: namespace, group, resource, subresource,
// name and verb.
func (s *Server) May(t testing.TB, user string, right [6]string) bool {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, Groups: []string{"system:serviceaccounts", "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: right[0], Group: right[1], Resource: right[2], Subresource: right[3], Name: right[4], Verb: right[5],
		},
	}}
	NoError(t, s.Admin(t).Create(t.Context(), review))
	return review.Status.Allowed
}
