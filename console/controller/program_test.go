package controller

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/patch/patchtest"
)

// shows says whether the conditions on the operator's resource tell of the reason, and whether the patch is in force.
func (c *cluster) shows(status operatorv1.ConditionStatus, reason string) func() error {
	return func() error {
		for _, condition := range c.operator().Status.Conditions {
			if condition.Type != "ConsoleTopologyPatchInForce" {
				continue
			}
			if condition.Status != status || condition.Reason != reason {
				return fmt.Errorf("%s (%s): %s; want %s (%s)", condition.Status, condition.Reason, condition.Message, status, reason)
			}
			return nil
		}
		return errors.New("there is no condition")
	}
}

func (c *cluster) eventuallyShaped(names ...string) {
	c.Helper()
	c.eventually("it is shaped", func() error {
		var faults []error
		for _, name := range names {
			faults = append(faults, c.shaped(name))
		}
		return errors.Join(faults...)
	})
}

// The program on an ordinary cluster: the topology flips at run time, both ways, and at rest nothing is written.
func TestFollowsTheTopology(t *testing.T) {
	c := installed(t, sr, sr, hundred()...)
	manifest := c.deployment(console.DownloadsName)
	p := c.start()
	c.eventually("it takes over, and waits for the answer", c.shows("True", "TakingOver"))
	stop := (&versionOperator{cluster: c}).work()
	defer stop()
	for _, mode := range []configv1.TopologyMode{sr, ha, sr} {
		c.flip(mode, mode)
		if mode == sr {
			c.eventuallyShaped(console.ConsoleName, console.DownloadsName)
			c.eventually("it is in force", c.shows("True", "AsExpected"))
			if !slices.Contains(c.clusterVersion().Spec.Overrides, console.Override()) {
				t.Error("downloads is shaped without an override")
			}
		} else {
			c.eventually("the override is gone", func() error { return c.overrides(hundred()...) })
			c.eventually("it is not needed", c.shows("False", "NotNeeded"))
			d := c.deployment(console.DownloadsName)
			if !equalSpec(manifest, d) {
				t.Errorf("downloads is not as the release has it: %+v", d.Spec)
			}
			c.requireNothingOfOurs(d, c.deployment(console.ConsoleName), c.clusterVersion())
		}
		p.touch(1)
		c.server.NoWrites(t, us, func() { p.touch(3) })
	}
	if n, err := p.Metric("sno_apply_total", `module="console"`, `result="error"`); err != nil || n > 20 {
		t.Errorf("%v failed writes, %v", n, err)
	}
	events := &eventsv1.EventList{}
	if err := c.admin.List(t.Context(), events, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, e := range events.Items {
		if e.ReportingController == "sno-console" {
			seen[e.Reason] = true
		}
	}
	if !seen["TakingOver"] || !seen["AsExpected"] || !seen["NotNeeded"] {
		t.Errorf("events: %v", seen)
	}
	p.Stop()
}

func equalSpec(a, b *appsv1.Deployment) bool {
	x, errX := yaml.Marshal(a.Spec)
	y, errY := yaml.Marshal(b.Spec)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// Plain Kubernetes serves neither ClusterVersion nor Console: both Deployments are shaped all the same, and when the kinds come,
// they count.
func TestKindsThatComeLater(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts an API server of its own; make proof runs it")
	}
	c := newCluster(t, patchtest.StartAPIServer(t, patchtest.Options{CRDs: []string{patchtest.Infrastructures}}))
	c.installInfrastructure(sr, sr)
	c.installConsole()
	c.applyAs("installer", unshaped(console.DownloadsName))
	p := c.start()
	p.Says("Working without kinds that the cluster does not serve")
	c.eventuallyShaped(console.ConsoleName, console.DownloadsName)
	c.rollOut()
	p.eventually("it is in force", p.Counts(1, "sno_patch_in_force"))
	p.touch(1)
	c.server.NoWrites(t, us, func() { p.touch(2) })

	c.installCRDs(patchtest.Consoles, patchtest.ClusterVersions)
	c.installOperator(operatorv1.Unmanaged)
	p.Says("Cluster serves more kinds, starting again")
	c.eventually("managementState counts", c.shows("False", "OptedOut"))
	c.requireNothingOfOurs(c.deployment(console.ConsoleName), c.deployment(console.DownloadsName))
	c.manage(operatorv1.Managed)
	c.eventuallyShaped(console.ConsoleName)

	// With a release that brings downloads, it is taken over.
	c.installVersion()
	stop := (&versionOperator{cluster: c}).work()
	defer stop()
	c.removeDownloads()
	c.eventually("downloads is taken over", func() error {
		if err := c.overrides(console.Override()); err != nil {
			return err
		}
		return c.shaped(console.DownloadsName)
	})
	p.Stop()
}

// A cluster that serves the kinds but has no such objects: without a Console there is nobody to show conditions to, without a
// ClusterVersion nobody who could be told to let go of downloads. Both may come later.
func TestObjectsThatComeLater(t *testing.T) {
	c := newCluster(t, shared.Server(t))
	c.installInfrastructure(sr, sr)
	c.installConsole()
	c.install(console.ClusterVersionOperator, manifest(console.DownloadsName))
	p := c.start()
	c.eventuallyShaped(console.ConsoleName)
	p.eventually("it waits for the ClusterVersion", p.Counts(1, "sno_blocked", `reason="WaitingForObject"`))
	p.touch(1)
	c.server.NoWrites(t, us, func() { p.touch(2) })
	if n := *c.deployment(console.DownloadsName).Spec.Replicas; n != 2 {
		t.Errorf("downloads wants %d replicas, although nobody let go of it", n)
	}

	c.installOperator(operatorv1.Managed)
	c.eventually("it says so", c.shows("False", "WaitingForObject"))
	c.installVersion()
	stop := (&versionOperator{cluster: c}).work()
	defer stop()
	c.eventuallyShaped(console.DownloadsName)
	c.eventually("it is in force", c.shows("True", "AsExpected"))
	p.Stop()
}

// A dry run says what it would do, at each step of the takeover, and writes nothing.
func TestDryRun(t *testing.T) {
	c := installed(t, sr, sr)
	asked := c.server.WritesDuring(t, us, func() {
		p := c.start("--dry-run")
		p.Says("the cluster-version-operator would be told to let go of downloads")
		p.eventually("it would", p.Counts(1, "sno_blocked", `reason="DryRun"`))
		p.Stop()
	})
	if len(asked) == 0 {
		t.Error("the API server was not even asked")
	}
	for _, write := range asked {
		if !strings.Contains(write.URI, "dryRun=All") {
			t.Errorf("not a dry run: %s", write)
		}
	}
	if err := c.overrides(); err != nil {
		t.Error(err)
	}
	w := c.walker()
	w.settle()
	c.flip(ha, ha)
	for _, a := range []*bool{&w.patcher.version.DryRun, &w.patcher.downloads.DryRun, &w.patcher.console.DryRun} {
		*a = true
	}
	if result := w.step(); result.Reason != "DryRun" || !strings.HasPrefix(result.Message, "Dry run: the patch would be taken off. ") {
		t.Error(result)
	}
	if err := c.overrides(console.Override()); err != nil {
		t.Error(err)
	}
}

// Without its permissions it says what is missing.
func TestForbidden(t *testing.T) {
	c := installed(t, sr, sr)
	w := c.walker(func(client.Client) client.Client { return c.server.Client(t, "nobody") })
	result := w.step()
	if result.Reason != "Forbidden" || !strings.Contains(result.Message, "clusterversions.config.openshift.io") || result.After == 0 {
		t.Errorf("%v, again in %s", result, result.After)
	}
}

// Flags that make no sense end the program at once with exit code 2 and a hint; help is no failure.
func TestFlags(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"help":                  {[]string{"--help"}, 0, "-dry-run"},
		"unknown status target": {[]string{"--status-target=clusteroperator"}, 2, "--status-target=clusteroperator"},
		"unknown flag":          {[]string{"--placement=topology"}, 2, "-placement"},
		"an argument":           {[]string{"now"}, 2, `"now"`},
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

// The manifests are what an API server accepts, and the roles permit what is needed and nothing beside it. (That they permit
// what is needed is shown by every other test: the controller runs with them.)
func TestManifests(t *testing.T) {
	c := newCluster(t, shared.Server(t))
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
			User: us, Groups: []string{"system:serviceaccounts", "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Group: group, Resource: resource, Subresource: subresource, Name: name, Verb: verb},
		}}
		if err := c.admin.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		return review.Status.Allowed
	}
	if !may(console.Namespace, "apps", "deployments", "", "downloads", "patch") {
		t.Error("downloads cannot be patched, so what follows proves nothing")
	}
	for _, not := range [][6]string{
		{console.Namespace, "apps", "deployments", "", "downloads", "update"},
		{console.Namespace, "apps", "deployments", "", "downloads", "create"},
		{console.Namespace, "apps", "deployments", "", "downloads", "delete"},
		{console.Namespace, "apps", "deployments", "", "other", "patch"},
		{console.Namespace, "policy", "poddisruptionbudgets", "", "console", "patch"},
		{console.Namespace, "", "pods", "", "", "list"},
		{console.Namespace, "", "secrets", "", "", "get"},
		{"openshift-authentication", "apps", "deployments", "", "downloads", "get"},
		{"", "config.openshift.io", "clusterversions", "", "version", "update"},
		{"", "config.openshift.io", "clusterversions", "status", "version", "patch"},
		{"", "config.openshift.io", "infrastructures", "", "cluster", "patch"},
		{"", "operator.openshift.io", "consoles", "", "cluster", "patch"},
		{"", "", "nodes", "", "", "list"},
		{"sno-system", "coordination.k8s.io", "leases", "", "somebody-elses", "update"},
	} {
		if may(not[0], not[1], not[2], not[3], not[4], not[5]) {
			t.Errorf("permitted, but not needed: %v", not)
		}
	}
}

// installCRDs brings kinds at run time.
func (c *cluster) installCRDs(names ...string) {
	c.Helper()
	folder, err := patchtest.APIModuleDir(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	for _, name := range names {
		file, err := patchtest.CRDManifest(folder, name)
		if err != nil {
			c.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			c.Fatal(err)
		}
		crd := object("", "", "", "")
		if err := yaml.Unmarshal(text, &crd.Object); err != nil {
			c.Fatal(err)
		}
		c.server.Put(c, crd)
	}
	c.eventually("they are served", func() error {
		return errors.Join(c.admin.List(c.Context(), &operatorv1.ConsoleList{}), c.admin.List(c.Context(), &configv1.ClusterVersionList{}))
	})
}
