// SPDX-License-Identifier: Apache-2.0

package approve_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/approver/requests"
	"github.com/solonode/sno/testcluster/apiserver"
)

// checkOutcomes runs the tool and checks the exit code and the outcomes.
func (c *testCluster) checkOutcomes(want map[string]string, args ...string) {
	c.Helper()
	wantCode := 0
	for _, result := range want {
		if strings.HasPrefix(result, "pending") {
			wantCode = 1
		}
	}
	code, out, messages := c.runOnce(append([]string{"-o=json"}, args...)...)
	if got := outcomesOf(c, out); code != wantCode || !maps.Equal(got, want) {
		c.Errorf("exit code %d, want %d; got\n%v, want\n%v\n%s", code, wantCode, got, want, messages)
	}
}

func outcomesOf(t testing.TB, stdout string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for line := range strings.Lines(stdout) {
		var f struct{ Request, Outcome, Reason string }
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if f.Request != "" {
			got[f.Request] = f.Outcome + " " + f.Reason
		}
	}
	return got
}

// R-APP-3, R-APP-4, R-SNO-12: a node joins and serves, and requests of an unknown node stay pending.
func TestJoinAndServe(t *testing.T) {
	c := newTestCluster(t)
	c.allowNodes("worker-1", "worker-2")
	joins, foreign := c.requestClient("worker-1"), c.requestClient("worker-9")
	c.checkOutcomes(map[string]string{joins: "would approve ProvenByInventory", foreign: "pending NotInInventory"}, "--dry-run")
	c.checkApproved(false, joins, foreign)
	c.checkOutcomes(map[string]string{joins: "approved ProvenByInventory", foreign: "pending NotInInventory"})
	c.checkApproved(true, joins)
	c.checkApproved(false, foreign)

	c.createNode("worker-1")
	serves, elsewhere := c.requestServing("worker-1", "worker-1", "192.0.2.1"), c.requestServing("worker-1", "worker-1", "10.0.0.1")
	c.checkOutcomes(map[string]string{
		serves: "approved ProvenByInventory", elsewhere: "pending KubeletUnreachable", foreign: "pending NotInInventory",
	})
	c.checkApproved(true, joins, serves)
	c.checkApproved(false, foreign, elsewhere)

	// Its current certificate is a second source if it is signed by the authority of the kubelets.
	c.presentCertificate("worker-1", newAuthority(), "worker-1", "10.0.0.1")
	c.checkOutcomes(map[string]string{elsewhere: "pending NamesNotProven", foreign: "pending NotInInventory"})
	c.presentCertificate("worker-1", c.ca, "worker-1", "10.0.0.1")
	c.checkOutcomes(map[string]string{elsewhere: "approved ProvenByCertificate", foreign: "pending NotInInventory"})
}

// Requests of kubeadm's tokens count with --bootstrap-tokens only, and then need the inventory as others do.
func TestBootstrapTokens(t *testing.T) {
	c := newTestCluster(t)
	c.allowNodes("worker-1")
	request := func(node string) string {
		return c.createRequest("system:bootstrap:abcdef", []string{"system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token"},
			newRequest(clientSigner, certificatesv1.UsageClientAuth, node))
	}
	joins, foreign := request("worker-1"), request("worker-9")
	c.checkOutcomes(map[string]string{joins: "pending RequestorWrong", foreign: "pending RequestorWrong"})
	c.checkOutcomes(map[string]string{joins: "approved ProvenByInventory", foreign: "pending NotInInventory"}, "--bootstrap-tokens")
	c.checkApproved(true, joins)
	c.checkApproved(false, foreign)
}

// Nothing is read for a request that cannot be approved anyway. A node is read and called once for its newest requests.
func TestCheapFirst(t *testing.T) {
	c := newTestCluster(t)
	c.allowNodes("worker-1", "worker-2")
	c.createNode("worker-2")
	called, read := 0, []string{}
	c.kubelets["worker-2"] = func(context.Context) ([]*x509.Certificate, error) {
		called++
		return []*x509.Certificate{c.ca.serving("worker-2", "worker-2")}, nil
	}
	c.crashInjector.BeforeRequest(func(r *http.Request) {
		if strings.Contains(r.URL.Path, "/nodes") {
			read = append(read, r.URL.Path)
		}
	})
	c.requestClient("worker-9")
	c.requestServing("worker-2", "worker-2", "*.apps.example.com")
	c.createRequest("system:node:worker-1", []string{"system:nodes"}, newRequest(servingSigner, certificatesv1.UsageServerAuth, "worker-2", "kubernetes"))
	_, out, _ := c.runOnce("-o=json")
	if called > 0 || len(read) > 0 {
		t.Errorf("%d kubelets called, nodes read: %v; want none", called, read)
	}
	for name, what := range outcomesOf(t, out) {
		if !strings.HasPrefix(what, "pending") || strings.Contains(what, "NodesUnknown") || strings.Contains(what, "NamesNotProven") {
			t.Errorf("%s: %s; checks that were not made cannot fail", name, what)
		}
	}
	for range 3 {
		c.requestServing("worker-3", "worker-3", "10.0.0.1") // there is no such node
	}
	if c.runOnce(); called > 0 || !slices.Equal(read, []string{"/api/v1/nodes/worker-3"}) {
		t.Errorf("%d kubelets called, nodes read: %v", called, read)
	}
	c.crashInjector.BeforeRequest(nil)
	for range 3 * requests.MaxServing {
		c.requestServing("worker-2", "worker-2", "10.0.0.1")
	}
	_, out, _ = c.runOnce("-o=json")
	count := map[string]int{}
	for _, what := range outcomesOf(t, out) {
		count[what]++
	}
	if count["pending NamesNotProven"] != requests.MaxServing || count["pending TooManyOfNode"] != 2*requests.MaxServing || called != 1 {
		t.Errorf("%v and %d calls", count, called)
	}
}

// Several client requests for one node all stay pending, unless the inventory allows as many.
func TestContested(t *testing.T) {
	c := newTestCluster(t)
	c.allowNodes("worker-1", "worker-2:2")
	one, other, two := c.requestClient("worker-1"), c.requestClient("worker-1"), []string{c.requestClient("worker-2"), c.requestClient("worker-2")}
	c.checkOutcomes(map[string]string{
		one: "pending Contested", other: "pending Contested", two[0]: "approved ProvenByInventory", two[1]: "approved ProvenByInventory",
	})
	apiserver.NoError(c, c.admin.Delete(t.Context(), c.get(other)))
	c.checkOutcomes(map[string]string{one: "approved ProvenByInventory"})
	late, third := c.requestClient("worker-1"), c.requestClient("worker-2")
	c.checkOutcomes(map[string]string{late: "pending CountUsedUp", third: "pending CountUsedUp"})
	c.checkApproved(false, late, third)
}

func TestLimit(t *testing.T) {
	c := newTestCluster(t)
	c.allowNodes("worker-1", "worker-2", "worker-3")
	first := c.requestClient("worker-1")
	c.checkOutcomes(map[string]string{first: "approved ProvenByInventory"}, "--max-approvals=2")
	two := []string{c.requestClient("worker-2"), c.requestClient("worker-3")}
	_, out, _ := c.runOnce("--max-approvals=2", "-o=json")
	if got := slices.Sorted(maps.Values(outcomesOf(t, out))); !slices.Equal(got, []string{"approved ProvenByInventory", "pending LimitReached"}) {
		t.Errorf("got %v, want one of two approved", got)
	}
	if (c.approvalOf(two[0]) == approvedByTool) == (c.approvalOf(two[1]) == approvedByTool) {
		t.Error("want one of the two approved")
	}
	c.runOnce("--max-approvals=3")
	c.checkApproved(true, append(two, first)...)
}

// A flood is read in pages, also when etcd is compacted in between, and the legitimate request is approved. e2e/bench
// has a larger one.
func TestFlood(t *testing.T) {
	c := newTestCluster(t)
	c.allowNodes("worker-1")
	flood := 2*pageSize + 100
	if testing.Short() {
		flood, c.pageSize = 60, 25
	}
	flooder, foreign, legitimate := c.clientFor(bootstrapper, bootstrapperGroups...), newRequest(clientSigner, certificatesv1.UsageClientAuth, "unknown"), ""
	for i := range flood {
		if i == flood/2 {
			legitimate = c.requestClient("worker-1")
		}
		apiserver.NoError(c, flooder.Create(t.Context(), foreign.DeepCopy()))
	}
	apiserver.NoError(c, flooder.Create(t.Context(), newRequest("example.com/other", certificatesv1.UsageClientAuth, "unknown")))
	lists, nodes := 0, 0
	c.crashInjector.BeforeRequest(func(r *http.Request) {
		switch query := r.URL.Query(); {
		case strings.HasSuffix(r.URL.Path, "/nodes") || (strings.HasSuffix(r.URL.Path, "/certificatesigningrequests") && query.Get("limit") != fmt.Sprint(c.pageSize)):
			t.Errorf("a list without pages: %s", r.URL)
		case strings.HasSuffix(r.URL.Path, "/certificatesigningrequests"):
			if lists++; lists == 2 {
				// After a write the pages have an older revision.
				namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
				apiserver.NoError(c, c.admin.Create(t.Context(), namespace))
				compact(t, c.server, namespace.ResourceVersion)
			}
		case strings.Contains(r.URL.Path, "/nodes/"):
			nodes++
		}
	})
	code, out, _ := c.runOnce()
	if c.checkApproved(true, legitimate); code != 1 || !strings.Contains(out, fmt.Sprintf("1 approved, %d left pending.", flood)) {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if want := flood/int(c.pageSize) + 3; lists != want || nodes != 1 { // one more for the compacted page, and one for the other signer
		t.Errorf("%d pages and %d nodes read, want %d and 1", lists, nodes, want)
	}
}

// A request that was modified after it was read is read and decided on again.
func TestRace(t *testing.T) {
	c := newTestCluster(t)
	c.allowNodes("worker-1", "worker-2", "worker-3", "worker-4")
	labelled, gone, denied, changing := c.requestClient("worker-1"), c.requestClient("worker-2"), c.requestClient("worker-3"), c.requestClient("worker-4")
	writes := map[string]int{}
	c.crashInjector.BeforeRequest(func(r *http.Request) {
		if r.Method != http.MethodPut {
			return
		}
		name := strings.Split(r.URL.Path, "/")[5]
		writes[name]++
		if writes[name] > 1 && name != changing {
			return
		}
		switch live := c.get(name); name {
		case labelled, changing:
			live.Labels = map[string]string{"n": fmt.Sprint(writes[name])}
			apiserver.NoError(c, c.admin.Update(t.Context(), live))
		case gone:
			apiserver.NoError(c, c.admin.Delete(t.Context(), live))
		case denied:
			live.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
				{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "No"},
			}
			apiserver.NoError(c, c.admin.SubResource("approval").Update(t.Context(), live))
		}
	})
	c.checkOutcomes(map[string]string{labelled: "approved ProvenByInventory", changing: "pending Changing"})
	c.checkApproved(true, labelled)
	if c.checkApproved(false, changing); c.approvalOf(denied) != "Denied No" {
		t.Errorf("the denied request is %q", c.approvalOf(denied))
	}
}

// Two parallel runs approve every request once, and write nothing else.
func TestTwoAtOnce(t *testing.T) {
	c := newTestCluster(t)
	var names, asked []string
	for i := range 8 {
		names = append(names, fmt.Sprintf("worker-%d", i+1))
		asked = append(asked, c.requestClient(names[i]))
	}
	c.allowNodes(names...)
	writes := c.server.WritesDuring(t, t.Name(), func() {
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if code, out, messages := c.runOnce(); code != 0 {
					t.Errorf("exit code %d\n%s%s", code, out, messages)
				}
			})
		}
		both.Wait()
	})
	c.checkApproved(true, asked...)
	for _, write := range writes {
		if write.Verb != "update" || !strings.Contains(write.URI, "/approval?") {
			t.Errorf("not the write of an approval: %s", write)
		}
	}
	for _, name := range asked {
		if conditions := c.get(name).Status.Conditions; len(conditions) != 1 {
			t.Errorf("%s has the conditions %v", name, conditions)
		}
	}
	c.server.NoWrites(t, t.Name(), func() {
		if code, out, _ := c.runOnce(); code != 0 || out != "No request of a node is pending.\n" {
			t.Errorf("a third run: exit code %d\n%s", code, out)
		}
	})
}

// A kubelet that hangs delays only its own requests. An interrupted run reports its approvals, and --timeout ends a
// run.
func TestInterrupted(t *testing.T) {
	c := newTestCluster(t)
	c.allowNodes("worker-1", "worker-2")
	c.createNode("worker-2")
	joins, serves := c.requestClient("worker-1"), c.requestServing("worker-2", "worker-2", "10.0.0.1")
	ctx, cancel := context.WithCancel(t.Context())
	c.kubelets["worker-2"] = func(ctx context.Context) ([]*x509.Certificate, error) {
		for c.approvalOf(joins) != approvedByTool && ctx.Err() == nil { // that approval must not wait for this call
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
		cancel()
		return hang(ctx)
	}
	var out, messages bytes.Buffer
	code := c.run(ctx, &out, &messages, "--once")
	if code != 130 || !strings.Contains(messages.String(), "what was approved stays approved") {
		t.Errorf("exit code %d, %s", code, &messages)
	}
	if !strings.Contains(out.String(), joins) || !strings.Contains(out.String(), "Not all requests were checked.") {
		t.Errorf("the approval is not reported:\n%s", &out)
	}
	c.kubelets["worker-2"] = hang
	if code, _, messages := c.runOnce("--timeout=1s"); code != 3 || !strings.Contains(messages, "--timeout=1s") {
		t.Errorf("exit code %d: %s", code, messages)
	}
	c.checkApproved(false, serves)
	c.presentCertificate("worker-2", c.ca, "worker-2", "10.0.0.1")
	c.checkOutcomes(map[string]string{serves: "approved ProvenByCertificate"})
}

// With --watch new requests are approved soon and changes are reported once, also after an outage and with an invalid
// inventory.
func TestWatch(t *testing.T) {
	c := newTestCluster(t)
	c.allowNodes("worker-1")
	c.createNode("worker-2")
	c.presentCertificate("worker-2", c.ca, "worker-2", "10.0.0.1")
	foreign := c.requestClient("worker-3")
	c.crashInjector.CrashAt(1, apiserver.CrashBeforeSend)
	out, messages := c.runWatch(func() {
		apiserver.Eventually(t, "a request fails", func() error {
			if !c.crashInjector.Crashed() {
				return errNoAnswer
			}
			return nil
		})
		c.crashInjector.Reset()
		c.waitUntilApproved(c.requestClient("worker-1"))
		c.waitUntilApproved(c.requestServing("worker-2", "worker-2", "10.0.0.1"))
		c.write("nodes.yaml", "version: 1\nnodes: [{name: worker-3, window: tomorrow}]\n")
		c.waitUntilApproved(c.requestServing("worker-2", "worker-2"))
		c.checkApproved(false, foreign)
		c.allowNodes("worker-1", "worker-3")
		c.waitUntilApproved(foreign)
	}, "--every=2s")
	if n := strings.Count(out, foreign); n != 3 { // twice as pending (table and checks), once as approved
		t.Errorf("%s is printed %d times:\n%s", foreign, n, out)
	}
	for _, want := range []string{"retrying in", "line 2, column", "the last inventory that could be read"} {
		if !strings.Contains(messages, want) {
			t.Errorf("%q is missing:\n%s", want, messages)
		}
	}
}
