// SPDX-License-Identifier: Apache-2.0

package existing

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// server is a real API server for all tests of the package. `make test-conformance` sets the path of its programs.
var server envtest.Environment

var scheme = runtime.NewScheme()

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(configv1.Install(scheme))
	utilruntime.Must(operatorv1.Install(scheme))
	code := 1
	err := startServer(context.Background())
	if err == nil {
		code = m.Run()
	}
	if stopErr := server.Stop(); err == nil {
		err = stopErr
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func startServer(ctx context.Context) error {
	server.ErrorIfCRDPathMissing = true
	for _, kind := range []string{"infrastructures", "ingresses"} {
		file, err := manifestOf(ctx, kind)
		if err != nil {
			return err
		}
		server.CRDInstallOptions.Paths = append(server.CRDInstallOptions.Paths, file)
	}
	_, err := server.Start()
	return err //nolint:wrapcheck // it names the program
}

// manifestOf returns a CustomResourceDefinition of OpenShift, whose name depends on the version of openshift/api.
func manifestOf(ctx context.Context, kind string) (string, error) {
	folder, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output()
	if err != nil {
		return "", fmt.Errorf("find the manifests of OpenShift's CustomResourceDefinitions: %w", err)
	}
	manifests := filepath.Join(strings.TrimSpace(string(folder)), "config", "v1", "zz_generated.crd-manifests")
	files, err := filepath.Glob(filepath.Join(manifests, "*_"+kind+"-Default.crd.yaml"))
	if err == nil && len(files) == 0 {
		files, err = filepath.Glob(filepath.Join(manifests, "*_"+kind+".crd.yaml"))
	}
	if err != nil || len(files) != 1 {
		return "", fmt.Errorf("%d manifests of %s are in %s, want one: %w", len(files), kind, manifests, err)
	}
	return files[0], nil
}

func admin(t *testing.T) client.Client {
	t.Helper()
	kube, err := client.New(server.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return kube
}

func kubeconfigOf(t *testing.T, user string, groups ...string) string {
	t.Helper()
	account, err := server.AddUser(envtest.User{Name: user, Groups: groups}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := account.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// changedKubeconfig returns a copy of a kubeconfig with another cluster or account.
func changedKubeconfig(t *testing.T, file string, change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range config.Clusters {
		for _, account := range config.AuthInfos {
			change(to, account)
		}
	}
	changed := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, changed); err != nil {
		t.Fatal(err)
	}
	return changed
}

func createNamespace(t *testing.T, name string) {
	t.Helper()
	if err := admin(t).Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

func grant(t *testing.T, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	for _, object := range []client.Object{role, binding} {
		if err := admin(t).Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// createInfrastructure creates Infrastructure cluster without a status for the duration of the test.
func createInfrastructure(t *testing.T) *configv1.Infrastructure {
	t.Helper()
	infrastructure := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	if err := admin(t).Create(t.Context(), infrastructure); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin(t).Delete(context.WithoutCancel(t.Context()), infrastructure); err != nil {
			t.Error(err)
		}
	})
	return infrastructure
}
