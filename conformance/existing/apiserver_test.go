// SPDX-License-Identifier: Apache-2.0

package existing

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
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
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	server.CRDs = []*apiextensionsv1.CustomResourceDefinition{
		anyKind("config.openshift.io", "v1", "Infrastructure"), anyKind("config.openshift.io", "v1", "ClusterOperator"),
		anyKind("operator.openshift.io", "v1", "Console"), anyKind("machine.openshift.io", "v1beta1", "Machine"),
	}
	for _, kind := range []string{"MachineConfig", "MachineConfigPool", "KubeletConfig", "ControllerConfig"} {
		server.CRDs = append(server.CRDs, anyKind("machineconfiguration.openshift.io", "v1", kind))
	}
	code := 1
	_, err := server.Start()
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

// anyKind is a kind whose objects may have any content, without a subresource.
func anyKind(group, version, kind string) *apiextensionsv1.CustomResourceDefinition {
	plural := strings.ToLower(kind) + "s"
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: version, Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)},
			}}},
		},
	}
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

// createInfrastructure creates Infrastructure cluster of a single node for the duration of the test.
func createInfrastructure(t *testing.T, name string) {
	t.Helper()
	infrastructure := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster", Annotations: secretAnnotations}, Status: configv1.InfrastructureStatus{
		InfrastructureName: name, ControlPlaneTopology: configv1.SingleReplicaTopologyMode, InfrastructureTopology: configv1.SingleReplicaTopologyMode,
	}}
	if err := admin(t).Create(t.Context(), infrastructure); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin(t).Delete(context.WithoutCancel(t.Context()), infrastructure); err != nil {
			t.Error(err)
		}
	})
}
