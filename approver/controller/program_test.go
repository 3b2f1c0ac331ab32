package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch/patchtest"
)

// account is the service account of config/rbac.
const account = "approver-controller"

// accountUser is what the audit log calls it.
var accountUser = patchtest.AccountUser(systemNamespace, account)

// process is the program, running with the permissions of config/rbac and no others.
type process struct {
	*cluster
	*patchtest.Process
}

// permit gives the account what config/rbac gives it.
func (c *cluster) permit() {
	c.Helper()
	for _, u := range patchtest.Manifests(c, "../config", "rbac/service_account.yaml", "rbac/role.yaml", "rbac/role_binding.yaml") {
		if err := client.IgnoreAlreadyExists(c.admin.Create(c.Context(), u)); err != nil {
			c.Fatalf("%s %s: %v", u.GetKind(), u.GetName(), err)
		}
	}
}

func (c *cluster) start(args ...string) *process {
	c.Helper()
	c.permit()
	kubeconfig := c.server.AccountKubeconfig(c, systemNamespace, account, "")
	return &process{c, patchtest.Start(c, append([]string{"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--kubelets-every=0"}, args...)...)}
}

// touch has somebody write to the ClusterVersion n times, and waits each time until the controller has looked.
func (p *process) touch(n int) {
	p.Helper()
	p.LooksAfter(n, "approver", func(beat int) {
		p.edit(versionObject, "oc", fmt.Sprintf(`{"metadata":{"labels":{"touched":"%d"}}}`, beat))
	})
}

// restsThrough fails for any write request of the program while others write.
func (p *process) restsThrough(n int) {
	p.Helper()
	p.touch(1)
	p.server.NoWrites(p, accountUser, func() { p.touch(n) })
}

// shows says whether the condition on the ClusterOperator has the status and reason.
func (c *cluster) shows(kind, status, reason string) func() error {
	return func() error {
		for _, condition := range c.operator().Status.Conditions {
			if string(condition.Type) != "ApproverTopology"+kind {
				continue
			}
			if string(condition.Status) != status || condition.Reason != reason {
				return fmt.Errorf("%s (%s): %s; want %s (%s)", condition.Status, condition.Reason, condition.Message, status, reason)
			}
			return nil
		}
		return errNot
	}
}

// says looks for a text in the messages of the conditions.
func (c *cluster) says(text string) error {
	for _, condition := range c.operator().Status.Conditions {
		if strings.Contains(condition.Message, text) {
			return nil
		}
	}
	return errNot
}

// rolled is a look at the cluster that also plays the Deployment controller and the cluster-version-operator.
func (c *cluster) rolled(check func() error) func() error {
	return func() error {
		c.reconcile()
		c.observe()
		c.rollOut()
		return check()
	}
}

// The program with no other permissions than those of config/rbac: both modes, both ways; at rest nothing is written, and no request
// ever.
func TestFollowsTheCluster(t *testing.T) {
	c := install(t)
	c.configure(persons)
	pending := []string{c.request(certificatesv1.KubeletServingSignerName), c.request(certificatesv1.KubeAPIServerClientKubeletSignerName)}
	for mode, message := range map[string]string{"node-client-off": "flow of the stock approver is disabled", "off": "The stock approver is off"} {
		// What the one before has shown stays until there is something else to show.
		inForce := c.rolled(func() error {
			if err := c.shows("PatchInForce", "True", "AsExpected")(); err != nil {
				return err
			}
			return c.says(message)
		})
		p := c.start("--mode="+mode, "--requests-every=200ms")
		patchtest.Eventually(t, mode+" is in force", inForce)
		c.must(c.shows("CertificatesPatchFailing", "False", "AsExpected")())
		patchtest.Eventually(t, "requests are counted", p.Counts(2, "sno_approver_pending_requests"))
		if age, err := p.Metric("sno_approver_oldest_pending_request_age_seconds"); err != nil || age <= 0 || age > 600 {
			t.Errorf("the oldest request is %v s old, %v", age, err)
		}
		p.restsThrough(2)
		c.flip(ha)
		patchtest.Eventually(t, "it is given back", c.rolled(c.untouched))
		if text, _ := c.text(); text != persons {
			t.Errorf("the configuration is not as it was:\n%s", text)
		}
		patchtest.Eventually(t, "it is not needed", c.shows("PatchInForce", "False", "NotNeeded"))
		p.restsThrough(1)
		c.flip(sr)
		patchtest.Eventually(t, mode+" is in force again", inForce)
		p.Stop()
	}
	for _, write := range c.server.Writes(t, accountUser) {
		if strings.Contains(write.URI, "certificatesigningrequests") {
			t.Errorf("it wrote to a request: %s", write)
		}
	}
	for _, name := range pending {
		r := &certificatesv1.CertificateSigningRequest{}
		if c.must(c.admin.Get(t.Context(), client.ObjectKey{Name: name}, r)); len(r.Status.Conditions) > 0 {
			t.Errorf("%s was decided on: %v", name, r.Status.Conditions)
		}
	}
	events := &eventsv1.EventList{}
	c.must(c.admin.List(t.Context(), events, client.InNamespace("default")))
	seen := map[string]bool{}
	for _, e := range events.Items {
		if e.ReportingController == "sno-approver" {
			seen[e.Reason] = true
		}
	}
	if !seen["AsExpected"] || !seen["NotNeeded"] {
		t.Errorf("events: %v", seen)
	}
}

// A Machine that comes gives the stock approver back at once, also of a kind that was not served when the program started, and when the
// last has gone the patch is there again. No look that comes by itself has a part in it, and at rest nothing is written.
func TestFollowsMachines(t *testing.T) {
	c := install(t)
	c.configure(persons)
	group := "machine.openshift.io"
	c.unserve(group)
	inForce := c.rolled(c.shows("PatchInForce", "True", "AsExpected"))
	p := c.start("--requests-every=1h")
	patchtest.Eventually(t, "it is in force", inForce)
	c.serve(group)
	remove := c.machine(group, "worker-1")
	patchtest.Eventually(t, "it is given back", c.rolled(c.untouched))
	patchtest.Eventually(t, "it is not needed", c.shows("PatchInForce", "False", "NotNeeded"))
	p.restsThrough(1)
	remove()
	patchtest.Eventually(t, "it is in force again", inForce)
	p.restsThrough(1)
	c.machine(group, "worker-2")
	patchtest.Eventually(t, "it is given back again", c.rolled(c.untouched))
	p.Stop()
	c.unserve(group)
}

// A permission that is missing is told, and nothing is half done.
func TestForbidden(t *testing.T) {
	c := install(t)
	c.permit()
	role := object("rbac.authorization.k8s.io/v1", "Role", namespace)
	role.SetName(account)
	c.must(c.admin.Get(t.Context(), client.ObjectKeyFromObject(role), role))
	c.must(c.admin.Delete(t.Context(), role.DeepCopy()))
	role.SetResourceVersion("")
	role.SetUID("")
	rules := role.DeepCopy()
	rules.Object["rules"] = []any{}
	for _, rule := range role.Object["rules"].([]any) {
		rule := rule.(map[string]any)
		rule["verbs"] = []any{"get", "list", "watch"}
		rules.Object["rules"] = append(rules.Object["rules"].([]any), rule)
	}
	c.must(c.admin.Create(t.Context(), rules))
	t.Cleanup(func() { c.must(c.admin.Delete(context.WithoutCancel(t.Context()), rules)) })
	p := c.start()
	patchtest.Eventually(t, "it is told", c.shows("PatchInForce", "False", "Forbidden"))
	c.must(c.untouched())
	p.Stop()
}

// Plain Kubernetes has no stock approver and none of OpenShift's kinds but the topology: nothing is to be done.
func TestWithoutStockApprover(t *testing.T) {
	c := install(t)
	c.must(c.admin.Delete(t.Context(), c.deployment()))
	p := c.start()
	patchtest.Eventually(t, "it is not needed", c.shows("PatchInForce", "False", "NotNeeded"))
	p.Stop()
}

// Flags that make no sense end the program at once with exit code 2 and a hint; help is no failure.
func TestFlags(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"help":           {[]string{"--help"}, 0, "-mode"},
		"unknown mode":   {[]string{"--mode=disabled"}, 2, "--mode=disabled"},
		"no limit":       {[]string{"--max-pending=0"}, 2, "--max-pending=0s is not positive"},
		"no warning":     {[]string{"--expiry-warning=-1h"}, 2, "--expiry-warning"},
		"never":          {[]string{"--requests-every=0"}, 2, "--requests-every"},
		"less than that": {[]string{"--kubelets-every=-1s"}, 2, "--kubelets-every"},
		"an argument":    {[]string{"now"}, 2, `"now"`},
	} {
		var out bytes.Buffer
		err := patchtest.Command(&out, test.args...).Run()
		code := 0
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			code = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if code != test.code || !strings.Contains(out.String(), test.says) {
			t.Errorf("%s: exit code %d, want %d and %q:\n%s", name, code, test.code, test.says, &out)
		}
	}
}

// The manifests are what an API server accepts, and the roles permit what is needed (which TestFollowsTheCluster shows, since the
// program runs with them) and nothing beside it.
func TestManifests(t *testing.T) {
	c := install(t)
	c.permit()
	for _, u := range patchtest.Manifests(t, "../config", "manager/namespace.yaml", "manager/deployment.yaml", "manager/metrics_service.yaml",
		"rbac/service_account.yaml", "rbac/role.yaml", "rbac/role_binding.yaml", "rbac/metrics_reader_role.yaml") {
		u.SetName(u.GetName() + "-dry-run")
		if err := c.admin.Create(t.Context(), u, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
			t.Errorf("%s %s: %v", u.GetKind(), u.GetName(), err)
		}
	}
	may := func(in, group, resource, subresource, name, verb string) bool {
		t.Helper()
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: accountUser, Groups: []string{"system:serviceaccounts", "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: in, Group: group, Resource: resource, Subresource: subresource, Name: name, Verb: verb},
		}}
		c.must(c.admin.Create(t.Context(), review))
		return review.Status.Allowed
	}
	patchtest.Eventually(t, "the roles are known", func() error {
		if !may(namespace, "apps", "deployments", "", stockName, "patch") {
			return errNot
		}
		return nil
	})
	for _, not := range [][6]string{
		{"", "certificates.k8s.io", "certificatesigningrequests", "approval", "", "update"},
		{"", "certificates.k8s.io", "certificatesigningrequests", "", "", "create"},
		{"", "certificates.k8s.io", "certificatesigningrequests", "", "", "delete"},
		{"", "certificates.k8s.io", "signers", "", "kubernetes.io/kubelet-serving", "approve"},
		{namespace, "apps", "deployments", "", "other", "patch"},
		{namespace, "apps", "deployments", "", stockName, "delete"},
		{namespace, "", "configmaps", "", "other", "get"},
		{namespace, "", "configmaps", "", "", "create"},
		{namespace, "", "secrets", "", "", "list"},
		{"", "config.openshift.io", "clusterversions", "status", "version", "patch"},
		{"", "config.openshift.io", "clusteroperators", "status", "other", "patch"},
		{"", "config.openshift.io", "clusteroperators", "", "machine-approver", "patch"},
		{"", "", "nodes", "", "node-0", "patch"},
		{"", "", "nodes", "proxy", "node-0", "get"},
		{systemNamespace, "coordination.k8s.io", "leases", "", "somebody-elses", "update"},
	} {
		if may(not[0], not[1], not[2], not[3], not[4], not[5]) {
			t.Errorf("permitted, but not needed: %v", not)
		}
	}
}
