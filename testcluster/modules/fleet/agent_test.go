// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/cli"
	"github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/agent"
	"github.com/solonode/sno/fleet/configuration"
	"github.com/solonode/sno/fleet/executor"
	"github.com/solonode/sno/fleet/feedback"
	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/crds"
	"github.com/solonode/sno/testcluster/modules"
)

var shared = apiserver.NewShared(apiserver.Options{CRDs: []string{
	crds.Infrastructures, crds.Ingresses, crds.IngressControllers, crds.ClusterVersions, crds.ClusterOperators, crds.Consoles, crds.Authentications,
	"etcds.operator.openshift.io", "machineconfigurations.operator.openshift.io", "machineconfigpools.machineconfiguration.openshift.io",
}})

func TestMain(m *testing.M) {
	apiserver.MaybeRunProgram(func(args []string) int {
		return cli.Main(args, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	})
	os.Exit(shared.Main(m))
}

// sno runs kubectl-sno in this process.
func sno(t testing.TB, args ...string) (string, string) {
	t.Helper()
	var out, errOut bytes.Buffer
	if code := cli.Main(args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}); code != 0 {
		t.Errorf("kubectl-sno %v ends with %d: %s", args, code, errOut.String())
	}
	return out.String(), errOut.String()
}

// rendered returns what a spoke gets for all modules, from what kubectl-sno renders.
func rendered(t testing.TB) []*unstructured.Unstructured {
	t.Helper()
	config := configuration.Configuration{
		Modules: feedback.Names(), Image: "registry.example.com/{module}-controller:v1", Tool: "registry.example.com/kubectl-sno:v1",
		DrainPolicy: "never", Placement: "topology",
	}
	workers := int64(0)
	objects, err := agent.Objects(config, addonv1alpha1.ConfigReferent{Namespace: "ns", Name: "sno"}, feedback.Report{Infrastructure: "SingleReplica", Workers: &workers}, false)
	apiserver.NoError(t, err)
	var out []*unstructured.Unstructured
	for _, o := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		apiserver.NoError(t, err)
		out = append(out, &unstructured.Unstructured{Object: content})
	}
	return out
}

// limit is what Open Cluster Management's webhook accepts in one ManifestWork; the framework splits what is larger.
const limit = 500 << 10

// The work agent of a spoke may apply what it gets, with its own roles (klusterlet-work-clusterrole-execution.yaml of
// ocm v1.2.1, and admin) and the one that the add-on brings.
func TestWorkAgentMayApply(t *testing.T) {
	server, objects := shared.Server(t), rendered(t)
	const user = "work-agent"
	all := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	server.Grant(t, user,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: all},
		rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterrolebindings", "rolebindings"}, Verbs: all},
		rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles", "roles"}, Verbs: append(all, "escalate", "bind")},
		// What the role admin has of these kinds.
		rbacv1.PolicyRule{APIGroups: []string{"", "apps", "batch", "networking.k8s.io"},
			Resources: []string{"serviceaccounts", "services", "deployments", "jobs", "networkpolicies"}, Verbs: all},
	)
	work := server.Client(t, user)
	rights, err := executor.Rights(nil)
	apiserver.NoError(t, err)
	server.Grant(t, user, rights[0].(*rbacv1.ClusterRole).Rules...) // aggregated to the roles of the work agent, by a controller
	readOnly, size := map[string]bool{}, 0
	for _, c := range (&agent.Agent{}).GetAgentAddonOptions().ManifestConfigs {
		if c.UpdateStrategy.Type == "ReadOnly" {
			readOnly[c.ResourceIdentifier.Group] = true
		}
	}
	// ClusterClaims are of the work agent's own API, which this server lacks.
	for _, o := range objects {
		text, err := json.Marshal(o)
		apiserver.NoError(t, err)
		size += len(text)
		group := o.GroupVersionKind().Group
		if o.GetNamespace() != "" {
			server.Put(t, modules.Object("v1", "Namespace", "", o.GetNamespace()).Unstructured())
		}
		switch {
		case o.GetKind() == "ClusterClaim":
		case readOnly[group]:
			if err := work.Get(t.Context(), client.ObjectKeyFromObject(o), o.DeepCopy()); client.IgnoreNotFound(err) != nil {
				t.Errorf("reading %s %s: %v", o.GetKind(), o.GetName(), err)
			}
		default:
			err := work.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("work-agent"), client.ForceOwnership)
			if err != nil {
				t.Errorf("applying %s %s: %v", o.GetKind(), o.GetName(), err)
			}
		}
	}
	if size > limit {
		t.Errorf("the manifests of all modules have %d bytes, and one ManifestWork at most %d", size, limit)
	}
}

const stock = `{"apiVersion":"operator.openshift.io/v1","kind":"IngressController","metadata":{"name":"default","namespace":"openshift-ingress-operator"},"spec":{"replicas":2}}`

// stockRouter creates what the stock operator creates, until the end of the test.
func stockRouter(t *testing.T, server *apiserver.Server) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	apiserver.NoError(t, object.UnmarshalJSON([]byte(stock)))
	apiserver.NoError(t, server.Admin(t).Create(t.Context(), object, client.FieldOwner("cluster-ingress-operator")))
	t.Cleanup(func() { apiserver.NoError(t, server.Admin(t).Delete(context.WithoutCancel(t.Context()), object)) })
	return object
}

// singleNode makes the API server that of a single node.
func singleNode(t *testing.T, server *apiserver.Server) {
	t.Helper()
	infrastructure := modules.Object("config.openshift.io/v1", "Infrastructure", "", "cluster").Unstructured()
	infrastructure.Object["spec"] = map[string]any{"platformSpec": map[string]any{"type": "None"}}
	server.Put(t, infrastructure)
	infrastructure.Object["status"] = map[string]any{
		"controlPlaneTopology": "SingleReplica", "infrastructureTopology": "SingleReplica", "infrastructureName": "", "etcdDiscoveryDomain": "",
		"apiServerURL": "", "apiServerInternalURI": "", "cpuPartitioning": "None",
	}
	data, err := json.Marshal(map[string]any{"status": infrastructure.Object["status"]})
	apiserver.NoError(t, err)
	apiserver.NoError(t, server.Admin(t).Status().Patch(t.Context(), infrastructure, client.RawPatch("application/merge-patch+json", data)))
}

// The Job of a module may release it, with the rights of the controller.
func TestAccountsMayRelease(t *testing.T) {
	server := shared.Server(t)
	for _, o := range rendered(t) {
		if o.GetNamespace() != "" {
			server.Put(t, modules.Object("v1", "Namespace", "", o.GetNamespace()).Unstructured())
		}
		if group := o.GroupVersionKind().Group; !strings.Contains(group, "openshift.io") && o.GetKind() != "ClusterClaim" {
			server.Put(t, o)
		}
	}
	singleNode(t, server)
	object := stockRouter(t, server)
	replicas := func() int64 {
		t.Helper()
		apiserver.NoError(t, server.Admin(t).Get(t.Context(), client.ObjectKeyFromObject(object), object))
		n, _, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
		apiserver.NoError(t, err)
		return n
	}
	admin := server.Kubeconfig(t, "admin", "system:masters")
	sno(t, "apply", "--modules", "ingress", "--kubeconfig", admin)
	if n := replicas(); n != 1 {
		t.Fatalf("%d routers after apply", n)
	}
	for _, module := range feedback.Names() {
		sno(t, "release", module, "--kubeconfig", server.AccountKubeconfig(t, fleet.Namespace, "sno-"+module+"-controller", ""))
	}
	if n := replicas(); n != 2 {
		t.Errorf("%d routers after the release, want those of before", n)
	}
}
