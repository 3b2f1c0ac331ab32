package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	operatorv1 "github.com/openshift/api/operator/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/patch/patchtest"
)

// shows says what the sub-conditions on the Authentication are to be.
func (c *cluster) shows(status operatorv1.ConditionStatus, reason string) func() error {
	return func() error {
		for _, condition := range c.authentication().Status.Conditions {
			if condition.Type == "AuthTopologyPatchInForce" && condition.Status == status && condition.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("conditions: %+v", c.authentication().Status.Conditions)
	}
}

func (c *cluster) overridesAre(want string) func() error {
	return func() error {
		if got := c.overrides(); got != want {
			return fmt.Errorf("unsupportedConfigOverrides are %s, want %s", got, want)
		}
		return nil
	}
}

func (c *cluster) replicasAre(server, apiServer int32) func() error {
	return func() error {
		s, a := *c.deployment(serverKey).Spec.Replicas, *c.deployment(apiServerKey).Spec.Replicas
		if s != server || a != apiServer || c.deployment(serverKey).Spec.Template.Spec.NodeSelector == nil || c.deployment(apiServerKey).Spec.Template.Spec.NodeSelector == nil {
			return fmt.Errorf("%d and %d replicas, pinned or not", s, a)
		}
		return nil
	}
}

// The program, with the permissions of config/rbac: it patches, shows and tells it, follows the topology at run time both ways,
// and writes nothing at rest or after a restart.
func TestProgram(t *testing.T) {
	c := install(t, sr, needs, 1)
	p := c.start()
	c.eventually("the override is set", c.overridesAre(set))
	c.eventually("the rollout is waited for", c.shows("True", "RollingOut"))
	c.rollOut()
	c.eventually("the patch is in force", c.shows("True", "AsExpected"))
	c.shaped(serverKey, 1, "0", "1", false)
	c.shaped(apiServerKey, 1, "1", "0", true)
	p.eventually("the metric says so", p.Counts(1, "sno_patch_in_force", `module="auth"`, `object="authentication/cluster"`))
	p.restsThrough(3)

	c.flip(ha)
	c.installNodes(3)
	c.eventually("the override is gone", c.overridesAre("absent"))
	c.eventually("there are three of each", c.replicasAre(3, 3))
	c.eventually("the rollout is waited for", c.shows("True", "RollingOut"))
	c.rollOut()
	c.eventually("the patch is in force", c.shows("True", "AsExpected"))
	p.restsThrough(3)

	c.flip(sr)
	c.eventually("the override is back", c.overridesAre(set))
	c.eventually("there is one of each", c.replicasAre(1, 1))
	c.eventually("the rollout is waited for", c.shows("True", "RollingOut"))
	c.rollOut()
	c.eventually("the patch is in force", c.shows("True", "AsExpected"))
	p.restsThrough(3)
	p.Stop()

	c.server.NoWrites(t, accountUser, func() {
		p = c.start()
		p.eventually("the new process has looked", func() error {
			n, err := p.Metric("controller_runtime_reconcile_total")
			if err == nil && n == 0 {
				err = errors.New("it has not")
			}
			return err
		})
		p.touch(1)
		p.Stop()
	})
	list := &eventsv1.EventList{}
	if err := c.admin.List(t.Context(), list, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, e := range list.Items {
		if e.ReportingController == "sno-auth" && e.Regarding.Kind == "Authentication" {
			told = append(told, e.Reason)
		}
	}
	for _, reason := range []string{"RollingOut", "AsExpected"} {
		if !slices.Contains(told, reason) {
			t.Errorf("no event for %s: %v", reason, told)
		}
	}
}

// --force-conflicts takes the Deployments from a stock operator, and never an override from anybody.
func TestProgramForcesDeploymentsOnly(t *testing.T) {
	c := install(t, sr, needs, 1)
	c.stockWrites()
	c.edit("oc", `{"unsupportedConfigOverrides":{"`+key+`":false}}`)
	p := c.start("--force-conflicts")
	c.eventually("the person is named", c.shows("False", "FieldOwnedByOther"))
	c.eventually("the old pods have given way", func() error {
		c.rollOut()
		if n := c.deployment(serverKey).Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue(); n != 0 {
			return fmt.Errorf("%d unavailable", n)
		}
		return nil
	})
	c.shaped(serverKey, 1, "0", "1", false)
	c.shaped(apiServerKey, 1, "1", "0", true)
	c.wantOverrides(`{"` + key + `":false}`)
	if !strings.Contains(c.fieldsOf("oc"), key) {
		t.Errorf("the override is no longer theirs: %s", c.fieldsOf("oc"))
	}
	p.restsThrough(2)
	p.Stop()
}

// --override=never and always come before what is known of the release.
func TestProgramOverrideFlag(t *testing.T) {
	c := install(t, sr, needsNot, 1)
	p := c.start("--override=always")
	c.eventually("the override is set", c.overridesAre(set))
	p.Stop()
	p = c.start("--override=never")
	c.eventually("the override is gone", c.overridesAre("absent"))
	p.Stop()
}

// A dry run asks the API server and writes nothing.
func TestProgramDryRun(t *testing.T) {
	c := install(t, sr, needs, 1)
	writes := c.server.WritesDuring(t, accountUser, func() {
		p := c.start("--dry-run")
		p.eventually("the metric says so", p.Counts(1, "sno_blocked", `module="auth"`, `reason="DryRun"`))
		p.touch(1)
		p.Stop()
	})
	if len(writes) == 0 {
		t.Error("the API server was not asked")
	}
	for _, write := range writes {
		if !strings.Contains(write.URI, "dryRun=All") {
			t.Errorf("a write in a dry run: %s", write)
		}
	}
	c.wantOverrides("absent")
}

// Without permission it says so, and goes on once it is permitted.
func TestProgramForbidden(t *testing.T) {
	c := install(t, sr, needs, 1)
	c.permit()
	role := &rbacv1.Role{}
	if err := c.admin.Get(t.Context(), client.ObjectKey{Namespace: auth.OAuthServerNamespace, Name: account}, role); err != nil {
		t.Fatal(err)
	}
	all := slices.Clone(role.Rules)
	role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list", "watch"}}}
	if err := c.admin.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the next test has the same role
		role.Rules = all
		if err := c.admin.Update(context.WithoutCancel(t.Context()), role); err != nil {
			t.Error(err)
		}
	})
	p := c.start()
	c.eventually("it says that it is forbidden", c.shows("False", "Forbidden"))
	c.wantOverrides(set) // the others stand for themselves
	role.Rules = all
	if err := c.admin.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	c.eventually("it goes on once that is permitted", func() error {
		p.touch(1) // RBAC takes effect a moment after it is written
		return c.replicasAre(1, 1)()
	})
	p.Stop()
}

// Plain Kubernetes: neither ClusterVersion nor Authentication is served. The Deployments are shaped; when the kind comes, it is
// followed without a restart of the process.
func TestProgramWithoutOptionalKinds(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts an API server of its own; make proof runs it")
	}
	c := newCluster(t, patchtest.StartAPIServer(t, patchtest.Options{CRDs: []string{patchtest.Infrastructures}}))
	c.installInfrastructure(sr)
	c.installDeployments()
	c.installNodes(1)
	p := c.start("--override=always")
	c.eventually("the Deployments are shaped", c.replicasAre(1, 1))
	p.eventually("the Authentication is waited for", p.Counts(1, "sno_blocked", `module="auth"`, `reason="WaitingForObject"`))
	c.rollOut()
	p.restsThrough(2)

	folder, err := patchtest.APIModuleDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	file, err := patchtest.CRDManifest(folder, patchtest.Authentications)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	crd := object("", "", "", "")
	if err := yaml.Unmarshal(text, &crd.Object); err != nil {
		t.Fatal(err)
	}
	c.create(crd, "installer")
	c.eventually("the kind is served", func() error { return c.admin.List(t.Context(), &operatorv1.AuthenticationList{}) })
	c.installAuthentication(`{"managementState":"Managed"}`)
	c.eventually("the override is set", c.overridesAre(set))
	c.eventually("the conditions are there", c.shows("True", "AsExpected"))
	p.Stop()
}

// Flags that make no sense end the program at once with exit code 2 and a hint; help is no failure.
func TestFlags(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
		says []string
	}{
		"help":           {[]string{"--help"}, 0, []string{"-override", "auto", "always", "never", "-force-conflicts"}},
		"unknown policy": {[]string{"--override=sometimes"}, 2, []string{"--override", `"sometimes"`, "auto, always or never"}},
		"unknown flag":   {[]string{"--master"}, 2, []string{"-master"}},
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

// The manifests are what an API server accepts, and the roles permit nothing beside what is needed. (That they permit that is
// shown by every test of the program.)
func TestManifests(t *testing.T) {
	c := install(t, sr, needs, 1)
	c.permit()
	for _, u := range patchtest.Manifests(t, "../config", "manager/namespace.yaml", "manager/deployment.yaml", "manager/metrics_service.yaml",
		"rbac/service_account.yaml", "rbac/role.yaml", "rbac/role_binding.yaml", "rbac/metrics_reader_role.yaml") {
		u.SetName(u.GetName() + "-dry-run")
		if err := c.admin.Create(t.Context(), u, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
			t.Errorf("%s %s: %v", u.GetKind(), u.GetName(), err)
		}
	}
	may := func(namespace, group, resource, subresource, name, verb string) bool {
		t.Helper()
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: accountUser, Groups: []string{"system:serviceaccounts", "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Group: group, Resource: resource, Subresource: subresource, Name: name, Verb: verb},
		}}
		if err := c.admin.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		return review.Status.Allowed
	}
	for _, patched := range [][4]string{
		{"", "operator.openshift.io", "authentications", "cluster"},
		{"openshift-authentication", "apps", "deployments", "oauth-openshift"},
		{"openshift-oauth-apiserver", "apps", "deployments", "apiserver"},
	} {
		for _, verb := range []string{"get", "list", "watch", "patch"} {
			if !may(patched[0], patched[1], patched[2], "", patched[3], verb) {
				t.Errorf("%s is needed, but not permitted: %v", verb, patched)
			}
		}
	}
	for _, not := range [][6]string{
		{"", "operator.openshift.io", "authentications", "", "cluster", "update"},
		{"", "operator.openshift.io", "authentications", "", "other", "patch"},
		{"", "operator.openshift.io", "authentications", "", "", "create"},
		{"", "config.openshift.io", "authentications", "", "cluster", "get"},
		{"", "config.openshift.io", "clusterversions", "", "version", "patch"},
		{"", "config.openshift.io", "infrastructures", "", "cluster", "patch"},
		{"", "", "nodes", "", "master-0", "patch"},
		{"openshift-authentication", "apps", "deployments", "", "other", "patch"},
		{"openshift-authentication", "apps", "deployments", "", "oauth-openshift", "delete"},
		{"openshift-oauth-apiserver", "apps", "deployments", "", "other", "patch"},
		{"openshift-oauth-apiserver", "apps", "deployments", "scale", "apiserver", "patch"},
		{"openshift-oauth-apiserver", "", "pods", "", "", "list"},
		{"openshift-authentication", "", "secrets", "", "", "get"},
		{"sno-system", "", "secrets", "", "", "get"},
		{"sno-system", "coordination.k8s.io", "leases", "", "somebody-elses", "update"},
	} {
		if may(not[0], not[1], not[2], not[3], not[4], not[5]) {
			t.Errorf("permitted, but not needed: %v", not)
		}
	}
}
