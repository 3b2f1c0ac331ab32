package controller

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	operatorv1 "github.com/openshift/api/operator/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch/patchtest"
)

// start runs the program as the controller's service account.
func (c *cluster) start(args ...string) *patchtest.Process {
	c.Helper()
	return patchtest.Start(c, append([]string{
		"--kubeconfig=" + c.server.AccountKubeconfig(c, systemNamespace, account, ""), "--leader-elect=false",
	}, args...)...)
}

// touch has somebody write to a node n times, and waits each time until the controller has looked at that.
func (c *cluster) touch(p *patchtest.Process, n int, node string) {
	c.Helper()
	p.LooksAfter(n, machineconfig.Name, func(beat int) {
		c.patch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, fmt.Sprintf(`{"metadata":{"labels":{"touched":"%d"}}}`, beat))
	})
}

// The program on plain Kubernetes, which serves none of the machine-config operator's kinds, from its first request to the day when
// the operator comes.
func TestProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for drains that fail; make proof runs it")
	}
	c := newCluster(t, patchtest.StartAPIServer(t, patchtest.Options{CRDs: []string{patchtest.Infrastructures}}), sr)
	c.addNode("w0", worker)
	c.addNode("w1", worker)
	c.pod("w0", "one", nil)
	p := c.start("--drain-timeout=2s")
	p.Says("Working without kinds that the cluster does not serve")
	p.Ready()

	c.ask("w0", "drain-a")
	patchtest.Eventually(t, "it is answered", c.is("w0", "drain-a", false))
	c.ask("w0", "uncordon-a")
	patchtest.Eventually(t, "it is answered", c.is("w0", "uncordon-a", false))
	c.touch(p, 1, "w1")
	c.server.NoWrites(t, us, func() { c.touch(p, 3, "w1") })

	// The topology changes in the middle of a drain, which the next try of another node would not survive either.
	c.budget("one", 0)
	c.flip(ha)
	p.Says("HighlyAvailable")
	c.ask("w0", "drain-b")
	patchtest.Eventually(t, "it is cordoned", c.is("w0", "uncordon-a", true))
	patchtest.Eventually(t, "a try has failed", func() error {
		n, err := p.Metric("sno_drain_tries_total", `result="failed"`)
		if err == nil && n == 0 {
			err = errors.New("none has")
		}
		return err
	})
	c.flip(sr)
	patchtest.Eventually(t, "it is answered, and takes pods again", c.is("w0", "drain-b", false))
	if left := c.pods(); len(left) != 1 {
		t.Errorf("%v are left", left)
	}
	c.ask("w0", "uncordon-b")

	c.flip(ha)
	c.budget("one", 1)
	p.Says("HighlyAvailable")
	c.ask("w0", "drain-c")
	patchtest.Eventually(t, "it is drained", c.is("w0", "drain-c", true))
	if left := c.pods(); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	// A stranger's request is told of, and not answered.
	c.ask("w1", "reboot-c")
	p.Says("Request cannot be understood")
	c.ask("w1", "")
	c.touch(p, 1, "w1")
	c.server.NoWrites(t, us, func() { c.touch(p, 3, "w1") })

	seen := map[string]bool{}
	patchtest.Eventually(t, "events tell of all of it", func() error {
		list := &eventsv1.EventList{}
		if err := c.admin.List(t.Context(), list, client.InNamespace("default")); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.ReportingController == "sno-machineconfig" && e.Regarding.Kind == "Node" {
				seen[e.Reason] = true
			}
		}
		for _, want := range []string{"DrainNotNeeded", "DrainStarted", "DrainFailed", "Drained", "Uncordoned", "Invalid"} {
			if !seen[want] {
				return fmt.Errorf("no event %s among %v", want, seen)
			}
		}
		return nil
	})

	c.installCRDs(stockKinds...)
	c.installStock()
	c.daemon("w0")
	p.Says("Cluster serves more kinds, starting again")
	patchtest.Eventually(t, "the operator's daemon is told", func() error { return c.told("w0", "HighlyAvailable") })
	c.ask("w0", "uncordon-c")
	c.touch(p, 1, "w1")
	c.server.NoWrites(t, us, func() { c.touch(p, 3, "w1") })
	if n := c.node("w0"); !n.Spec.Unschedulable || c.answer("w0") == "uncordon-c" {
		t.Error("a request was answered that is the operator's to answer")
	}
	p.Stop()
}

// How it stands is shown on the operator's own resource.
func TestConditions(t *testing.T) {
	c := newCluster(t, shared.Server(t), ha)
	u := object("operator.openshift.io/v1", "MachineConfiguration", machineconfig.OperatorName)
	u.Object["spec"] = map[string]any{"managementState": "Managed"}
	c.must(c.admin.Create(t.Context(), u))
	c.addNode("w0", worker)
	c.pod("w0", "held", nil)
	c.budget("held", 0)
	p := c.start("--drain-timeout=1s")
	shows := func(status, reason string) func() error {
		return func() error {
			operator := &operatorv1.MachineConfiguration{}
			if err := c.admin.Get(t.Context(), client.ObjectKey{Name: machineconfig.OperatorName}, operator); err != nil {
				return err
			}
			for _, condition := range operator.Status.Conditions {
				if condition.Type == "MachineConfigTopologyPatchInForce" && string(condition.Status) == status && condition.Reason == reason {
					return nil
				}
			}
			return fmt.Errorf("%+v", operator.Status.Conditions)
		}
	}
	patchtest.Eventually(t, "it is in force", shows("True", "AsExpected"))
	c.ask("w0", "drain-a")
	patchtest.Eventually(t, "a drain fails", shows("False", "DrainFailed"))
	patchtest.Eventually(t, "the metric says so", p.Counts(1, "sno_blocked", `reason="DrainFailed"`))
	c.budget("held", 1)
	patchtest.Eventually(t, "it is in force", shows("True", "AsExpected"))
	c.must(c.is("w0", "drain-a", true)())
	c.patch(u, `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":"machineconfig"}}}`)
	patchtest.Eventually(t, "it keeps away", shows("False", "OptedOut"))
	c.ask("w0", "uncordon-a")
	c.touch(p, 1, "w0")
	c.server.NoWrites(t, us, func() { c.touch(p, 2, "w0") })
	c.must(c.is("w0", "drain-a", true)())
	p.Stop()
}

// Killed in the middle of a drain, the next process goes on.
func TestKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("TestGoesOnAfterARestart has the same without a process; make proof runs this")
	}
	c := newCluster(t, shared.Server(t), ha)
	c.addNode("w0", worker)
	c.pod("w0", "free", nil)
	c.pod("w0", "held", nil)
	c.budget("held", 0)
	c.ask("w0", "drain-a")
	first := c.start()
	patchtest.Eventually(t, "one pod is evicted", func() error {
		if left := c.pods(); len(left) != 1 {
			return fmt.Errorf("%v are left", left)
		}
		return nil
	})
	first.Kill()
	c.must(c.is("w0", "", true)())
	second := c.start()
	patchtest.Eventually(t, "it is drained", c.released("held", c.is("w0", "drain-a", true)))
	if left := c.pods(); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	second.Stop()
}

// Flags that make no sense end the program at once with exit code 2 and a hint; help is no failure.
func TestFlags(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"help":           {[]string{"--help"}, 0, "-drain-policy"},
		"unknown policy": {[]string{"--drain-policy=sometimes"}, 2, `"sometimes"`},
		"unknown flag":   {[]string{"--force"}, 2, "-force"},
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

func TestValidate(t *testing.T) {
	for flags, says := range map[string]string{
		"": "", "--drain-policy=workers": "", "--drain-timeout=1s": "", "--graceful-shutdown=on --shutdown-bound=1h": "",
		"--drain-policy=sometimes": `"sometimes"`, "--graceful-shutdown=maybe": `"maybe"`, "--shutdown-bound=1s": "1s",
		"--drain-timeout=1ms": "--drain-timeout=1ms", "--drain-timeout=-1m": "--drain-timeout=-1m",
	} {
		m := &Module{}
		set := flag.NewFlagSet("x", flag.ContinueOnError)
		m.BindFlags(set)
		if err := set.Parse(strings.Fields(flags)); err != nil {
			t.Fatal(err)
		}
		if err := m.Validate(); (err == nil) != (says == "") || (err != nil && !strings.Contains(err.Error(), says)) {
			t.Errorf("%q: %v, want %q", flags, err, says)
		}
	}
	if err := (&Module{}).Validate(); err != nil {
		t.Errorf("the zero value: %v", err)
	}
}

// The manifests are what an API server accepts, and the roles permit what is needed and nothing beside it. (That they permit
// what is needed is shown by every other test: the controller runs with them.)
func TestManifests(t *testing.T) {
	c := newCluster(t, shared.Server(t), ha)
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
		c.must(c.admin.Create(t.Context(), review))
		return review.Status.Allowed
	}
	const mco = "machineconfiguration.openshift.io"
	if !may("any", "", "pods", "eviction", "any", "create") {
		t.Error("no pod can be evicted, so what follows proves nothing")
	}
	for _, not := range [][6]string{
		{"any", "", "pods", "", "any", "delete"}, {"any", "", "pods", "", "", "watch"}, {"any", "", "pods", "", "any", "patch"},
		{"", "", "nodes", "", "any", "delete"}, {"", "", "nodes", "", "any", "update"}, {"", "", "nodes", "status", "any", "patch"},
		{"any", "apps", "daemonsets", "", "", "list"}, {"any", "", "secrets", "", "", "get"},
		{"", mco, "machineconfigs", "", "rendered-master-0", "get"}, {"", mco, "machineconfigs", "", "", "list"},
		{"", mco, "machineconfigs", "", "99-worker-ssh", "patch"}, {"", mco, "kubeletconfigs", "", "theirs", "patch"},
		{"", mco, "kubeletconfigs", "", "theirs", "delete"}, {"", mco, "machineconfigpools", "", "master", "patch"},
		{"", mco, "controllerconfigs", "", "machine-config-controller", "patch"},
		{"", "operator.openshift.io", "machineconfigurations", "", "cluster", "patch"},
		{"", "config.openshift.io", "infrastructures", "", "cluster", "patch"},
		{"any", "policy", "poddisruptionbudgets", "", "any", "patch"}, {"sno-system", "coordination.k8s.io", "leases", "", "other", "update"},
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
	c.must(err)
	for _, name := range names {
		file, err := patchtest.CRDManifest(folder, name)
		c.must(err)
		text, err := os.ReadFile(file)
		c.must(err)
		crd := object("", "", "")
		c.must(yaml.Unmarshal(text, &crd.Object))
		c.server.Put(c, crd)
	}
	patchtest.Eventually(c, "they are served", func() error {
		var faults []error
		for _, kind := range []string{"MachineConfigPool", "ControllerConfig", "KubeletConfig", "MachineConfig"} {
			list := object("machineconfiguration.openshift.io/v1", kind, "any")
			faults = append(faults, client.IgnoreNotFound(c.admin.Get(c.Context(), client.ObjectKeyFromObject(list), list)))
		}
		return errors.Join(faults...)
	})
}
