package controller_test

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/patch/patchtest"
)

// newServer is an API server without OpenShift's kinds.
func newServer(t *testing.T) *patchtest.APIServer {
	t.Helper()
	return patchtest.StartAPIServer(t, patchtest.Options{})
}

// installCRDs brings OpenShift's kinds, with an Infrastructure whose status may say anything.
func (c *cluster) installCRDs() {
	c.Helper()
	folder, err := patchtest.APIModuleDir(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	for _, name := range []string{patchtest.Ingresses, patchtest.IngressControllers, patchtest.Infrastructures} {
		file, err := patchtest.CRDManifest(folder, name)
		if err != nil {
			c.Fatal(err)
		}
		crd := object("", "", "", "")
		if err := yaml.Unmarshal([]byte(readFile(c.T, file)), &crd.Object); err != nil {
			c.Fatal(err)
		}
		if name == patchtest.Infrastructures {
			if err := anyStatus(crd); err != nil {
				c.Fatal(err)
			}
		}
		c.server.Put(c, crd)
		kind, _, err := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		if err != nil {
			c.Fatal(err)
		}
		group, _, err := unstructured.NestedString(crd.Object, "spec", "group")
		if err != nil {
			c.Fatal(err)
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind + "List"})
		c.eventually(name+" is served", func() error { return c.admin.List(c.Context(), list) })
	}
}

// Flags that make no sense end the program at once with exit code 2 and a hint; help is no failure.
func TestFlags(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
		says []string
	}{
		"help": {[]string{"--help"}, 0, []string{"-placement", "-dry-run", "-force-conflicts", "-leader-elect", "-status-target",
			"-kubeconfig", "-metrics-bind-address", "-health-probe-bind-address"}},
		"unknown placement":     {[]string{"--placement=both"}, 2, []string{"--placement", "both", "topology", "defaultPlacement"}},
		"unknown status target": {[]string{"--status-target=clusteroperator"}, 2, []string{"--status-target=clusteroperator", "operator", "none"}},
		"unknown flag":          {[]string{"--master"}, 2, []string{"-master"}},
		"an argument":           {[]string{"now"}, 2, []string{`"now"`}},
		"no such kubeconfig":    {[]string{"--kubeconfig=does-not-exist"}, 1, []string{"finding the cluster (give --kubeconfig or set KUBECONFIG)"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := patchtest.Command(&out, test.args...).Run()
			code := 0
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				code = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if code != test.code {
				t.Errorf("exit code %d, want %d:\n%s", code, test.code, &out)
			}
			for _, text := range test.says {
				if !strings.Contains(out.String(), text) {
					t.Errorf("the output does not say %q:\n%s", text, &out)
				}
			}
		})
	}
}

// No conditions are written where none are wanted.
func TestStatusTargetNone(t *testing.T) {
	c := sharedCluster(t, sr, sr)
	c.installController(1)
	w := c.writes(account, func() {
		p := c.start("--status-target=none")
		c.eventually("it is pinned", c.pinned(one))
		c.rollOut()
		p.eventually("it is in force", func() error { return p.Counts(0, "sno_blocked")() })
		p.touch(2)
		p.Stop()
	})
	if len(w.spec) != 1 || len(w.status) > 0 {
		t.Errorf("writes: %+v", w)
	}
}

// The manifests are what an API server accepts, and the roles permit what is needed and nothing beside it. (That they permit
// what is needed is shown by every other test: the controller runs with them.)
func TestManifests(t *testing.T) {
	c := sharedCluster(t, sr, sr)
	for _, u := range patchtest.Manifests(t, "../config", "manager/namespace.yaml", "manager/deployment.yaml", "manager/metrics_service.yaml",
		"rbac/service_account.yaml", "rbac/role.yaml", "rbac/role_binding.yaml", "rbac/metrics_reader_role.yaml") {
		u.SetName(u.GetName() + "-dry-run")
		err := c.admin.Create(t.Context(), u, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
		if err != nil {
			t.Errorf("%s %s: %v", u.GetKind(), u.GetName(), err)
		}
	}

	may := func(namespace, group, resource, subresource, name, verb string) bool {
		t.Helper()
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user(account), Groups: []string{"system:serviceaccounts", "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Group: group, Resource: resource, Subresource: subresource, Name: name, Verb: verb},
		}}
		if err := c.admin.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		return review.Status.Allowed
	}
	if !may("openshift-ingress-operator", "operator.openshift.io", "ingresscontrollers", "", "default", "patch") {
		t.Error("the default IngressController cannot be patched, so what follows proves nothing")
	}
	for _, not := range [][6]string{
		{"openshift-ingress-operator", "operator.openshift.io", "ingresscontrollers", "", "internal", "patch"},
		{"openshift-ingress-operator", "operator.openshift.io", "ingresscontrollers", "", "default", "update"},
		{"openshift-ingress-operator", "operator.openshift.io", "ingresscontrollers", "", "default", "create"},
		{"openshift-ingress-operator", "operator.openshift.io", "ingresscontrollers", "", "default", "delete"},
		{"openshift-ingress-operator", "", "secrets", "", "", "get"},
		{"", "config.openshift.io", "infrastructures", "", "cluster", "patch"},
		{"", "config.openshift.io", "infrastructures", "status", "cluster", "patch"},
		{"openshift-ingress", "apps", "deployments", "", "router-default", "patch"},
		{"openshift-ingress", "", "pods", "", "", "list"},
		{"", "", "nodes", "", "", "list"},
		{"sno-system", "", "secrets", "", "", "get"},
		{"sno-system", "coordination.k8s.io", "leases", "", "somebody-elses", "update"},
	} {
		if may(not[0], not[1], not[2], not[3], not[4], not[5]) {
			t.Errorf("permitted, but not needed: %v", not)
		}
	}
}
