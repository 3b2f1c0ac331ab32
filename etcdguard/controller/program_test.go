package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch/patchtest"
)

// shows says whether the conditions on the Etcd tell of the reason, and whether the guard is in force.
func (c *cluster) shows(status operatorv1.ConditionStatus, reason string) func() error {
	return func() error {
		for _, condition := range c.operator().Status.Conditions {
			if condition.Type != "EtcdGuardTopologyPatchInForce" {
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

// rolled is a look at the cluster that also plays the Deployment controller.
func (c *cluster) rolled(check func() error) func() error {
	return func() error {
		c.rollOut()
		return check()
	}
}

// TestFollowsTheCluster shows R-SNO-7 and R-SNO-4. The program runs on an ordinary cluster, with no other permissions
// than those of config/rbac: it follows topology, nodes and certificates, and at rest nothing is written.
func TestFollowsTheCluster(t *testing.T) {
	c := install(t, ha, 3)
	stop := c.versionOperator().work()
	defer stop()
	p := c.start()
	p.eventually("it is not needed", c.shows("False", "NotNeeded"))
	p.restsThrough(2)

	c.must(c.admin.Delete(t.Context(), object("v1", "Secret", namespace, "etcd-client")))
	c.become(ha, 5)
	p.eventually("the certificate is missing", c.shows("False", "CertificateMissing"))
	c.guard(3, 1, false)
	c.must(c.admin.Delete(t.Context(), object("v1", "ConfigMap", namespace, "etcd-ca-bundle")))
	c.installCertificates()
	p.eventually("there are five", func() error { return c.hasGuard(5, 2, true) })
	p.eventually("it is in force", c.rolled(c.shows("True", "AsExpected")))
	p.restsThrough(3)

	c.become(sr, 1)
	p.eventually("there is none", func() error { return c.hasGuard(0, 0, true) })
	p.eventually("it is in force", c.shows("True", "AsExpected"))
	p.restsThrough(3)

	c.become(arbiter, 3)
	p.eventually("there are three", func() error { return c.hasGuard(3, 1, true) })
	p.eventually("it is in force", c.rolled(c.shows("True", "AsExpected")))
	p.restsThrough(3)

	// Somebody deletes it.
	c.must(c.admin.Delete(t.Context(), deploymentObject.Unstructured()))
	p.eventually("it is made again", func() error { return c.hasGuard(3, 1, true) })

	events := &eventsv1.EventList{}
	c.must(c.admin.List(t.Context(), events, client.InNamespace("default")))
	seen := map[string]bool{}
	for _, e := range events.Items {
		if e.ReportingController == "sno-etcdguard" {
			seen[e.Reason] = true
		}
	}
	if !seen["CertificateMissing"] || !seen["AsExpected"] {
		t.Errorf("events: %v", seen)
	}
	if n, err := p.Metric("sno_apply_total", `module="etcdguard"`, `result="applied"`); err != nil || n == 0 {
		t.Errorf("%v writes counted, %v", n, err)
	}
	p.Stop()
}

// Plain Kubernetes serves neither ClusterVersion nor Etcd: nobody has to be asked to let go.
func TestWithoutOpenShift(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts an API server of its own; make proof runs it")
	}
	t.Parallel()
	c := newCluster(t, patchtest.StartAPIServer(t, patchtest.Options{CRDs: []string{patchtest.Infrastructures}}))
	c.create(&configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}, "installer")
	c.installCertificates()
	c.become(ha, 5)
	p := c.start()
	p.Says("Working without kinds that the cluster does not serve")
	p.eventually("there is a guard", func() error {
		d, b := c.deployment(), c.budget()
		if d == nil || b == nil || *d.Spec.Replicas != 5 || b.Spec.MaxUnavailable.IntValue() != 2 {
			return errors.New("there is none, or it is wrong")
		}
		c.rollOut()
		return p.Counts(1, "sno_patch_in_force")()
	})
	p.Stop()
}

// Two controllers at once: one of them writes. When it stops, the next goes on.
func TestTwoAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts two processes; make proof runs it")
	}
	c := install(t, ha, 3)
	stop := c.versionOperator().work()
	defer stop()
	twins := map[string]*process{}
	for _, name := range []string{"twin-a", "twin-b"} {
		twins[name] = c.startAs(c.server.Kubeconfig(c, name, "system:masters"), "--leader-elect", "--leader-elect-resource-namespace="+systemNamespace)
	}
	c.become(ha, 5)
	c.eventually("there are five", func() error { return c.hasGuard(5, 2, true) })
	wrote := func(name string) (n int) {
		for _, write := range c.server.Writes(t, name) {
			if !strings.Contains(write.URI, "/leases") && !strings.Contains(write.URI, "/events") {
				n++
			}
		}
		return n
	}
	a, b := wrote("twin-a"), wrote("twin-b")
	if (a == 0) == (b == 0) {
		t.Errorf("twin-a wrote %d times, twin-b %d", a, b)
	}
	leader, other := "twin-a", "twin-b"
	if b > 0 {
		leader, other = other, leader
	}
	before := wrote(leader)
	twins[leader].Stop()
	before2 := wrote(leader)
	// A third one finds the Lease given back; the one that waits would look in half a minute.
	third := c.startAs(c.server.Kubeconfig(c, "twin-c", "system:masters"), "--leader-elect", "--leader-elect-resource-namespace="+systemNamespace)
	c.become(arbiter, 3)
	c.eventually("there are three", func() error { return c.hasGuard(3, 1, true) })
	if wrote(leader) != before2 || before2 < before || (wrote(other) == 0) == (wrote("twin-c") == 0) {
		t.Errorf("the first wrote %d times, then %d; the second %d, the third %d", before, wrote(leader), wrote(other), wrote("twin-c"))
	}
	third.Stop()
	twins[other].Stop()
}

// after waits until that many versions of objects were written, whoever wrote them.
func (h *history) after(versions int64) {
	h.Helper()
	from := h.revision()
	h.eventually("something is written", func() error {
		if got := h.revision() - from; got < versions {
			return fmt.Errorf("%d of %d", got, versions)
		}
		return nil
	})
}

// The program is killed at random moments of every change, beside a cluster-version-operator that works all the time.
func TestProcessKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts processes; make proof runs it")
	}
	const randomSeed = 1
	random := rand.New(rand.NewPCG(randomSeed, 0))
	c := install(t, ha, 3)
	h := c.history()
	defer c.versionOperator().work()()
	p := c.start()
	for _, w := range []world{
		{mode: ha, nodes: 5}, {mode: sr, nodes: 1}, {mode: dual, nodes: 2}, {mode: arbiter, nodes: 3}, {mode: ha, nodes: 3}, {mode: ha, nodes: 5},
	} {
		w = w.healthyEtcd()
		h.become(w)
		h.after(random.Int64N(5))
		p.Kill()
		p = c.start()
		c.eventually("it is right", func() error { return h.rest(w) })
	}
	p.Stop()
	if ours := h.check(); ours < 6 {
		t.Errorf("only %d writes of ours", ours)
	}
}

// killable is a program for patchtest that starts the API server again whenever it is killed, as a kubelet does, and what kills it.
func killable(t *testing.T) (program string, kill func(*cluster)) {
	t.Helper()
	binaries, err := patchtest.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	program, pid := filepath.Join(folder, "kube-apiserver"), filepath.Join(folder, "pid")
	script := fmt.Sprintf(`#!/bin/sh
[ "$1" != --help ] || exec '%[1]s' "$@"
trap 'kill "$child"; wait "$child"; exit 0' TERM INT
while :; do
	'%[1]s' "$@" &
	child=$!
	echo "$child" >'%[2]s.new' && mv '%[2]s.new' '%[2]s'
	wait "$child"
done
`, filepath.Join(binaries, "kube-apiserver"), pid)
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	read := func(c *cluster) int {
		text, err := os.ReadFile(pid)
		c.must(err)
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		c.must(err)
		return n
	}
	return program, func(c *cluster) {
		c.Helper()
		before := read(c)
		c.must(syscall.Kill(before, syscall.SIGKILL))
		c.eventually("the API server is back", func() error {
			if read(c) == before {
				return errStillThere
			}
			_, err := c.admin.RESTMapper().ResourceFor(deploymentObject.GroupVersion().WithResource("deployments"))
			return errors.Join(err, c.admin.Get(c.Context(), client.ObjectKey{Name: "cluster"}, &configv1.Infrastructure{}))
		})
	}
}

// The API server is killed at random moments of every change, under a running program and a cluster-version-operator.
func TestAPIServerKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts an API server again and again; make proof runs it")
	}
	t.Parallel()
	const randomSeed = 2
	random := rand.New(rand.NewPCG(randomSeed, 0))
	program, kill := killable(t)
	c := newCluster(t, patchtest.StartAPIServer(t, patchtest.Options{
		CRDs: []string{patchtest.Infrastructures, patchtest.ClusterVersions, etcds}, Flags: asJSON, Program: program,
	}))
	c.installAll(ha, 3)
	h := c.history()
	defer c.versionOperator().work()()
	p := c.start()
	for _, w := range []world{{mode: ha, nodes: 5}, {mode: sr, nodes: 1}, {mode: arbiter, nodes: 3}} {
		w = w.healthyEtcd()
		h.become(w)
		h.after(random.Int64N(5))
		kill(c)
		c.eventually("it is right", func() error { return h.rest(w) })
	}
	p.Stop()
	if ours := h.check(); ours < 6 {
		t.Errorf("only %d writes of ours", ours)
	}
}

// Two at once without leader election are held apart by what their writes are bound to.
func TestTwoWithoutElection(t *testing.T) {
	c := install(t, ha, 3)
	h := c.history()
	stop := c.versionOperator().work()
	defer stop()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	for range 2 {
		l := c.looker()
		go func() {
			defer func() { ended <- struct{}{} }()
			for ctx.Err() == nil {
				_, _ = l.try() // what the other one changed is decided on again
			}
		}()
	}
	for _, w := range []world{{mode: ha, nodes: 5}, {mode: arbiter, nodes: 3}, {mode: sr, nodes: 1}, {mode: ha, nodes: 3}} {
		w = w.healthyEtcd()
		h.become(w)
		c.eventually("it is right", func() error { return h.rest(w) })
	}
	cancel()
	<-ended
	<-ended
	h.check()
}

// Flags that make no sense end the program at once with exit code 2 and a hint; help is no failure.
func TestFlags(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"help":                  {[]string{"--help"}, 0, "-etcd-endpoints"},
		"unknown status target": {[]string{"--status-target=clusteroperator"}, 2, "--status-target=clusteroperator"},
		"no endpoint":           {[]string{"--etcd-endpoints=ftp://x:1"}, 2, "--etcd-endpoints"},
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

// The manifests are what an API server accepts, and the roles permit what is needed (which TestFollowsTheCluster shows, since the
// program runs with them) and nothing beside it.
func TestManifests(t *testing.T) {
	c := newCluster(t, shared.Server(t))
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
		c.must(c.admin.Create(t.Context(), review))
		return review.Status.Allowed
	}
	c.eventually("the roles are known", func() error {
		if !may(namespace, "apps", "deployments", "", guardName, "patch") {
			return errors.New("the guard cannot be patched")
		}
		return nil
	})
	for _, not := range [][6]string{
		{namespace, "apps", "deployments", "", guardName, "update"},
		{namespace, "apps", "deployments", "", "other", "patch"},
		{namespace, "apps", "deployments", "", "other", "delete"},
		{namespace, "apps", "deployments", "", "", "create"},
		{namespace, "policy", "poddisruptionbudgets", "", "etcd-guard-pdb", "patch"},
		{namespace, "policy", "poddisruptionbudgets", "", "etcd-guard-pdb", "delete"},
		{namespace, "", "secrets", "", "", "list"},
		{namespace, "", "secrets", "", "other", "get"},
		{namespace, "", "configmaps", "", "other", "get"},
		{namespace, "", "pods", "", "", "list"},
		{"openshift-etcd-operator", "apps", "deployments", "", "etcd-operator", "get"},
		{"", "config.openshift.io", "clusterversions", "", "version", "update"},
		{"", "config.openshift.io", "clusterversions", "status", "version", "patch"},
		{"", "config.openshift.io", "infrastructures", "", "cluster", "patch"},
		{"", "operator.openshift.io", "etcds", "", "cluster", "patch"},
		{"", "", "nodes", "", "node-0", "patch"},
		{systemNamespace, "coordination.k8s.io", "leases", "", "somebody-elses", "update"},
	} {
		if may(not[0], not[1], not[2], not[3], not[4], not[5]) {
			t.Errorf("permitted, but not needed: %v", not)
		}
	}
}
