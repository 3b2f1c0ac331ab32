package outside

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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch/patchtest"
)

// once runs the tool and returns the exit code and both streams.
func (w *world) once(args ...string) (code int, stdout, stderr string) {
	w.Helper()
	var out, complaints bytes.Buffer
	code, err := w.run(w.Context(), &out, &complaints, append([]string{"--once"}, args...)...)
	if err != nil {
		fmt.Fprintln(&complaints, err)
	}
	return code, out.String(), complaints.String()
}

// says runs the tool and checks the exit code and the outcome and reason of each request.
func (w *world) says(want map[string]string, args ...string) {
	w.Helper()
	wantCode := 0
	for _, what := range want {
		if strings.HasPrefix(what, "pending") {
			wantCode = 1
		}
	}
	code, out, complaints := w.once(append([]string{"-o=json"}, args...)...)
	if got := reasons(w, out); code != wantCode || !maps.Equal(got, want) {
		w.Errorf("exit code %d, want %d; said\n%v, want\n%v\n%s", code, wantCode, got, want, complaints)
	}
}

// reasons reads -o json: the outcome and reason of each request.
func reasons(t testing.TB, stdout string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for line := range strings.Lines(stdout) {
		var f finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if f.Request != "" {
			got[f.Request] = string(f.Outcome) + " " + f.Reason
		}
	}
	return got
}

// TestJoinAndServe shows R-APP-3, R-APP-4 and R-SNO-12: a node joins and serves, and the requests of a hostile one
// stay pending meanwhile.
func TestJoinAndServe(t *testing.T) {
	w := newWorld(t)
	w.expects("worker-1", "worker-2")
	joins, foreign := w.joins("worker-1"), w.joins("worker-9")
	w.says(map[string]string{joins: "approved ProvenByInventory", foreign: "pending NotInInventory"})
	w.isApproved(true, joins)
	w.isApproved(false, foreign)

	w.add("worker-1")
	serves, elsewhere := w.serves("worker-1", "worker-1", "192.0.2.1"), w.serves("worker-1", "worker-1", "10.0.0.1")
	w.says(map[string]string{
		serves: "approved ProvenByInventory", elsewhere: "pending KubeletUnreachable", foreign: "pending NotInInventory",
	})
	w.isApproved(true, joins, serves)
	w.isApproved(false, foreign, elsewhere)

	// What it serves with is a second source, if it is signed by who signs for kubelets.
	w.answers("worker-1", newAuthority(t).serving(t, "worker-1", "worker-1", "10.0.0.1"))
	w.says(map[string]string{elsewhere: "pending NamesNotProven", foreign: "pending NotInInventory"})
	w.answers("worker-1", w.ca.serving(t, "worker-1", "worker-1", "10.0.0.1"))
	w.says(map[string]string{elsewhere: "approved ProvenByCertificate", foreign: "pending NotInInventory"})
}

// What costs more than looking is done only where nothing else is missing: no node is read, and no kubelet called, for a request that
// cannot be approved anyway. And a node is read once, however many ask for it.
func TestCheapFirst(t *testing.T) {
	w := newWorld(t)
	w.expects("worker-1", "worker-2")
	w.add("worker-2")
	called, read := 0, []string{}
	w.kubelets["worker-2"] = func(context.Context) ([]*x509.Certificate, error) {
		called++
		return nil, errNoAnswer
	}
	w.before = func(r *http.Request) {
		if strings.Contains(r.URL.Path, "/nodes") {
			read = append(read, r.URL.Path)
		}
	}
	w.joins("worker-9")
	w.serves("worker-2", "worker-2", "*.apps.example.com")
	w.asks("system:node:worker-1", []string{"system:nodes"}, servingSigner, certificatesv1.UsageServerAuth, request(t, "worker-2", []string{"kubernetes"}, nil))
	_, out, _ := w.once("-o=json")
	if called > 0 || len(read) > 0 {
		t.Errorf("%d kubelets called, nodes read: %v; want none", called, read)
	}
	for name, what := range reasons(t, out) {
		if !strings.HasPrefix(what, "pending") || strings.Contains(what, "NodesUnknown") || strings.Contains(what, "NamesNotProven") {
			t.Errorf("%s: %s; what was not asked for cannot be missing", name, what)
		}
	}
	for range 3 {
		w.serves("worker-3", "worker-3", "10.0.0.1") // a node that is not there
	}
	if w.once(); called > 0 || !slices.Equal(read, []string{"/api/v1/nodes/worker-3"}) {
		t.Errorf("%d kubelets called, nodes read: %v", called, read)
	}
}

// Of several requests for one node, which is its own cannot be told, unless the inventory allows as many.
func TestContested(t *testing.T) {
	w := newWorld(t)
	w.expects("worker-1", "worker-2:2")
	one, other := w.joins("worker-1"), w.joins("worker-1")
	w.says(map[string]string{one: "pending Contested", other: "pending Contested"})
	w.must(w.admin.Delete(t.Context(), &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: other}}))
	w.says(map[string]string{one: "approved ProvenByInventory"})
	late := w.joins("worker-1")
	w.says(map[string]string{late: "pending CountUsedUp"})

	two := []string{w.joins("worker-2"), w.joins("worker-2")}
	w.says(map[string]string{late: "pending CountUsedUp", two[0]: "approved ProvenByInventory", two[1]: "approved ProvenByInventory"})
	third := w.joins("worker-2")
	w.says(map[string]string{late: "pending CountUsedUp", third: "pending CountUsedUp"})
	w.isApproved(false, late, third)
}

// A node that has many requests is looked at a few of, the newest.
func TestManyOfOneNode(t *testing.T) {
	w := newWorld(t)
	w.expects("worker-1")
	w.add("worker-1")
	called := 0
	w.kubelets["worker-1"] = func(context.Context) ([]*x509.Certificate, error) {
		called++
		return []*x509.Certificate{w.ca.serving(t, "worker-1", "worker-1")}, nil
	}
	for range 3 * servingPerNode {
		w.serves("worker-1", "worker-1", "10.0.0.1")
	}
	_, out, _ := w.once("-o=json")
	count := map[string]int{}
	for _, what := range reasons(t, out) {
		count[what]++
	}
	if want := map[string]int{"pending NamesNotProven": servingPerNode, "pending TooManyOfNode": 2 * servingPerNode}; !maps.Equal(count, want) || called != 1 {
		t.Errorf("%v and %d calls, want %v and one", count, called, want)
	}
}

// Only so many are approved within the window, whoever runs the tool; one by one, who has waited longest first.
func TestLimit(t *testing.T) {
	w := newWorld(t)
	w.expects("worker-1", "worker-2", "worker-3")
	first := w.joins("worker-1")
	w.says(map[string]string{first: "approved ProvenByInventory"}, "--max-approvals=2")
	two := []string{w.joins("worker-2"), w.joins("worker-3")}
	_, out, _ := w.once("--max-approvals=2", "-o=json")
	got := slices.Sorted(maps.Values(reasons(t, out)))
	if !slices.Equal(got, []string{"approved ProvenByInventory", "pending LimitReached"}) {
		t.Errorf("said %v of two, where one may be approved", got)
	}
	if approved := slices.IndexFunc(two, func(name string) bool { return w.approval(name) == ours }); approved < 0 {
		t.Error("none was approved")
	}
	w.once("--max-approvals=3")
	w.isApproved(true, append(two, first)...)
}

// A flood is read in pages, and no more of the cluster than the one node that a request is about; the legitimate request in it is
// approved. e2e/proof has 10,000 of them on 2,000 nodes.
func TestFlood(t *testing.T) {
	w := newWorld(t)
	w.expects("worker-1")
	requests := 2*pageSize + 100
	if testing.Short() {
		requests = 60
	}
	flooder, text := w.as(bootstrapper, bootstrapperGroups...), request(t, "stranger", nil, nil)
	legitimate := ""
	for i := range requests {
		if i == requests/2 {
			legitimate = w.joins("worker-1")
		}
		w.must(flooder.Create(t.Context(), newRequest(clientSigner, certificatesv1.UsageClientAuth, text)))
	}
	lists, nodes := 0, 0
	w.before = func(r *http.Request) {
		switch query := r.URL.Query(); {
		case strings.HasSuffix(r.URL.Path, "/nodes") || (strings.HasSuffix(r.URL.Path, "/certificatesigningrequests") && query.Get("limit") != "500"):
			t.Errorf("everything is read at once: %s", r.URL)
		case strings.HasSuffix(r.URL.Path, "/certificatesigningrequests"):
			lists++
		case strings.Contains(r.URL.Path, "/nodes/"):
			nodes++
		}
	}
	code, out, _ := w.once()
	if w.isApproved(true, legitimate); code != 1 || !strings.Contains(out, fmt.Sprintf("1 approved, %d left pending.", requests)) {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if want := requests/pageSize + 2; lists != want || nodes != 1 {
		t.Errorf("%d pages and %d nodes read, want %d and 1", lists, nodes, want)
	}
}

// A dry run asks the API server, and writes nothing.
func TestDryRun(t *testing.T) {
	w := newWorld(t)
	w.expects("worker-1")
	joins := w.joins("worker-1")
	w.says(map[string]string{joins: "would approve ProvenByInventory"}, "--dry-run")
	w.isApproved(false, joins)
	code, out, _ := w.once("--dry-run")
	if code != 0 || !strings.Contains(out, "1 would be approved (dry run).") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// Somebody writes between the read and the write: it is read and decided on again, and what is no longer there is nobody's.
func TestRace(t *testing.T) {
	w := newWorld(t)
	w.expects("worker-1", "worker-2", "worker-3")
	labelled, gone, denied := w.joins("worker-1"), w.joins("worker-2"), w.joins("worker-3")
	at := func(name string) *certificatesv1.CertificateSigningRequest {
		r := &certificatesv1.CertificateSigningRequest{}
		w.must(w.admin.Get(t.Context(), client.ObjectKey{Name: name}, r))
		return r
	}
	var once sync.Map
	w.before = func(r *http.Request) {
		if _, again := once.LoadOrStore(r.URL.Path, true); again || r.Method != http.MethodPut {
			return
		}
		switch name := strings.Split(r.URL.Path, "/")[5]; name {
		case labelled:
			r := at(name)
			r.Labels = map[string]string{"seen": "yes"}
			w.must(w.admin.Update(t.Context(), r))
		case gone:
			w.must(w.admin.Delete(t.Context(), at(name)))
		case denied:
			r := at(name)
			r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "No"}}
			w.must(w.admin.SubResource("approval").Update(t.Context(), r))
		}
	}
	w.says(map[string]string{labelled: "approved ProvenByInventory"})
	if w.isApproved(true, labelled); w.approval(denied) != "Denied No" {
		t.Errorf("what was denied meanwhile is %q", w.approval(denied))
	}
}

// Somebody writes it all the time: nothing is approved that was not decided on.
func TestNeverTheSame(t *testing.T) {
	w := newWorld(t)
	w.expects("worker-1")
	joins, n := w.joins("worker-1"), 0
	w.before = func(r *http.Request) {
		if r.Method == http.MethodPut {
			n++
			live := &certificatesv1.CertificateSigningRequest{}
			w.must(w.admin.Get(t.Context(), client.ObjectKey{Name: joins}, live))
			live.Labels = map[string]string{"n": fmt.Sprint(n)}
			w.must(w.admin.Update(t.Context(), live))
		}
	}
	w.says(map[string]string{joins: "pending Changing"})
	w.isApproved(false, joins)
}

// Two at once: everything is approved once, by one of them, and both say that nothing is left.
func TestTwoAtOnce(t *testing.T) {
	w := newWorld(t)
	var names, requests []string
	for i := range 8 {
		names = append(names, fmt.Sprintf("worker-%d", i+1))
	}
	w.expects(names...)
	for _, name := range names {
		requests = append(requests, w.joins(name))
	}
	writes := w.server.WritesDuring(t, t.Name(), func() {
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if code, out, complaints := w.once(); code != 0 {
					t.Errorf("exit code %d\n%s%s", code, out, complaints)
				}
			})
		}
		both.Wait()
	})
	w.isApproved(true, requests...)
	for _, write := range writes {
		if write.Verb != "update" || !strings.Contains(write.URI, "/approval?") {
			t.Errorf("a write beside the approval subresource: %s", write)
		}
	}
	for _, name := range requests {
		r := &certificatesv1.CertificateSigningRequest{}
		w.must(w.admin.Get(t.Context(), client.ObjectKey{Name: name}, r))
		if len(r.Status.Conditions) != 1 {
			t.Errorf("%s has the conditions %v", name, r.Status.Conditions)
		}
	}
	w.server.NoWrites(t, t.Name(), func() {
		if code, out, _ := w.once(); code != 0 || out != "No node waits for a certificate.\n" {
			t.Errorf("a third time: exit code %d\n%s", code, out)
		}
	})
}

// A kubelet that hangs keeps nobody waiting but who needs its certificate, and an interrupted run says what it did.
func TestInterrupted(t *testing.T) {
	w := newWorld(t)
	w.expects("worker-1", "worker-2")
	w.add("worker-2")
	joins, serves := w.joins("worker-1"), w.serves("worker-2", "worker-2", "10.0.0.1")
	ctx, cancel := context.WithCancel(t.Context())
	w.kubelets["worker-2"] = func(ctx context.Context) ([]*x509.Certificate, error) {
		for w.approval(joins) != ours && ctx.Err() == nil { // the other one does not wait for this call
			wait(ctx, 20*time.Millisecond)
		}
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	var out, complaints bytes.Buffer
	code, err := w.run(ctx, &out, &complaints, "--once")
	if code != 130 || err == nil || !strings.Contains(err.Error(), "what was approved stays approved") {
		t.Errorf("exit code %d, %v", code, err)
	}
	if !strings.Contains(out.String(), joins) || !strings.Contains(out.String(), "Not all requests were looked at.") {
		t.Errorf("it does not say what it did:\n%s", &out)
	}
	w.isApproved(false, serves)
	// Another run goes on from there.
	w.answers("worker-2", w.ca.serving(t, "worker-2", "worker-2", "10.0.0.1"))
	w.says(map[string]string{serves: "approved ProvenByCertificate"})
}

// A run that takes too long ends, with what is known.
func TestTimeout(t *testing.T) {
	w := newWorld(t)
	w.expects("worker-1")
	w.add("worker-1")
	w.serves("worker-1", "worker-1", "10.0.0.1")
	w.kubelets["worker-1"] = func(ctx context.Context) ([]*x509.Certificate, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	code, _, complaints := w.once("--timeout=1s")
	if code != 3 || !strings.Contains(complaints, "--timeout=1s") {
		t.Errorf("exit code %d: %s", code, complaints)
	}
}

// watching runs the tool with --watch until the function returns, and returns what it said.
func (w *world) watching(during func(), args ...string) (stdout, stderr string) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	var out, complaints bytes.Buffer
	ended := make(chan error, 1)
	go func() {
		code, err := w.run(ctx, &out, &complaints, append([]string{"--watch"}, args...)...)
		if err == nil && code != 0 {
			err = fmt.Errorf("exit code %d", code)
		}
		ended <- err
	}()
	during()
	cancel()
	if err := <-ended; err != nil {
		w.Errorf("being stopped: %v", err)
	}
	return out.String(), complaints.String()
}

// It goes on: what comes is approved within seconds, windows that open are noticed, and what is known is said once. An inventory that
// somebody breaks while it is edited leaves the last one in place.
func TestWatch(t *testing.T) {
	w := newWorld(t)
	w.expects("worker-1")
	w.add("worker-2")
	w.answers("worker-2", w.ca.serving(t, "worker-2", "worker-2", "10.0.0.1"))
	foreign := w.joins("worker-3")
	approvedSoon := func(name string) {
		patchtest.Eventually(t, name+" is approved", func() error {
			if got := w.approval(name); got != ours {
				return fmt.Errorf("it is %q", got)
			}
			return nil
		})
	}
	out, complaints := w.watching(func() {
		approvedSoon(w.joins("worker-1"))
		approvedSoon(w.serves("worker-2", "worker-2", "10.0.0.1"))
		w.write("nodes.yaml", []byte("version: 1\nnodes: [{name: worker-3, window: tomorrow}]\n"))
		approvedSoon(w.serves("worker-2", "worker-2"))
		w.isApproved(false, foreign)
		w.expects("worker-1", "worker-3")
		approvedSoon(foreign)
	}, "--every=2s")
	if n := strings.Count(out, foreign); n != 3 { // once in the table and once below it as pending, once as approved
		t.Errorf("%s is named %d times:\n%s", foreign, n, out)
	}
	if !strings.Contains(complaints, "line 2, column") || !strings.Contains(complaints, "going on with the last one") {
		t.Errorf("said of a broken inventory:\n%s", complaints)
	}
}

// It outlives an API server that does not answer.
func TestWatchOutage(t *testing.T) {
	w := newWorld(t)
	w.expects("worker-1")
	w.away.Store(true)
	_, complaints := w.watching(func() {
		joins := w.joins("worker-1")
		patchtest.Eventually(t, "it was noticed", func() error {
			if !w.missed.Load() {
				return errNoAnswer
			}
			return nil
		})
		w.away.Store(false)
		patchtest.Eventually(t, "it is approved", func() error {
			if w.approval(joins) != ours {
				return errNoAnswer
			}
			return nil
		})
	})
	if !strings.Contains(complaints, "trying again") {
		t.Errorf("said: %s", complaints)
	}
}
