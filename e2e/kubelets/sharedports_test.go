// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/traffic"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/images"
)

const (
	sharedEach = 20
	// drained is grace and hard-stop-after of haproxy.cfg: only then may the old router close a WebSocket.
	drained = 3 * time.Second
	// answerLimit is after how long a request counts as lost. Processes of a busy machine can stop for more than a second.
	answerLimit = 10 * time.Second

	echoName  = "sno-echo"
	echoImage = "registry.invalid/sno/web-server:1"
	echoPort  = 8080

	// migrate is whether the kernel gives connections of a listener that closes to another one of the same port.
	migrate = "net.ipv4.tcp_migrate_req"
)

// sharing is a way to roll out a router with host ports.
type sharing struct {
	name     string
	hostArgs []string
	migrate  int
	// required means that no request may be lost.
	required bool
}

// Today's rollouts of a router with host ports in comparison with those of ingress.Host.WithSharedHostPorts (R-SNO-2).
var _ = DescribeTable("A router with host ports that is rolled out 20 times", Label(optIn), Serial,
	func(ctx SpecContext, how sharing) {
		s := openSite(ctx, cluster(ctx, day2Workers))
		s.runEcho(ctx)
		DeferCleanup(s.setMigrate, 0)
		s.setMigrate(ctx, how.migrate)
		record(s.rollShared(ctx, how).judge(how)...)
	},
	Entry("with today's strategy, for comparison", NodeTimeout(time.Hour), sharing{name: "today's strategy", hostArgs: []string{"--stock"}}),
	Entry("with shared ports, for comparison", NodeTimeout(time.Hour), sharing{name: "shared, " + migrate + "=0", hostArgs: []string{"--shared-host-ports"}}),
	Entry("with shared ports and "+migrate+"=1 loses no request, and closes a WebSocket once, after it has drained", NodeTimeout(time.Hour),
		sharing{name: "shared, " + migrate + "=1", hostArgs: []string{"--shared-host-ports"}, migrate: 1, required: true}),
)

// load is what clients noticed during all rollouts.
type load struct {
	http, https []traffic.Sample
	// control are requests to a server on the same node without the router. They are slow if the machine is.
	control []traffic.Sample
	cuts    []traffic.Outage
	// deleted is when the old router of each rollout was deleted, to the second before.
	deleted []time.Time
	ended   time.Time
}

func (s *site) rollShared(ctx context.Context, how sharing) *load {
	GinkgoHelper()
	s.run(ctx, firstRouter, how.hostArgs...)
	declares := how.hostArgs[0] == "--stock"
	s.router(ctx, "rolled out with "+how.name, func(p *corev1.Pod) bool { return (len(p.Spec.Containers[0].Ports) > 0) == declares })
	visit := func(scheme string, port int, body string) *traffic.Generator {
		users := traffic.Start(ctx, traffic.Endpoint{URL: s.url(scheme, port) + "/", Body: body, Within: answerLimit})
		DeferCleanup(func() { users.Stop() })
		return users
	}
	plain, secured, control := visit("http", 80, greeting), visit("https", 443, greeting), visit("http", echoPort, s.node+"\n")
	webSocket, stop, err := openSocket(ctx, s.url("ws", 80)+"/echo", answerLimit)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(stop)
	restored := func() {
		answered(ctx, plain, secured, control)
		Eventually(ctx, webSocket.usable).Should(BeEmpty())
	}
	s.replaced(ctx, "")
	restored()
	result, begun := &load{}, time.Now()
	for i := range sharedEach {
		old := s.router(ctx, "to replace", func(*corev1.Pod) bool { return true })
		s.roll(ctx, fmt.Sprintf("%s %d", how.name, i))
		result.deleted = append(result.deleted, s.replaced(ctx, old.UID))
		restored()
	}
	result.ended, result.cuts = time.Now(), webSocket.since(begun)
	result.http, result.https, result.control = plain.Since(begun), secured.Since(begun), control.Since(begun)
	return result
}

// judge returns the figures; only what is required has a bound.
func (l *load) judge(how sharing) []suite.Row {
	lost := lostOf(l.http) + lostOf(l.https)
	longest := max(traffic.Longest(traffic.Outages(l.http), l.ended), traffic.Longest(traffic.Outages(l.https), l.ended))
	failed, away := 0, time.Duration(0)
	for _, cut := range l.cuts {
		// The first failed message is that the connection was closed.
		failed, away = failed+cut.Failed-1, max(away, cut.Length(l.ended))
	}
	what := fmt.Sprintf("%d router rollouts on one node, host ports, %s", len(l.deleted), how.name)
	requests := suite.Row{
		What: what + ": requests", Bound: "-", Held: true,
		Compared: fmt.Sprintf("without the router: lost %d of %d, slowest answer %s", lostOf(l.control), len(l.control), suite.Seconds(slowest(l.control))),
		Measured: fmt.Sprintf("lost http %d of %d, https %d of %d; longest outage %s; slowest answer %s",
			lostOf(l.http), len(l.http), lostOf(l.https), len(l.https), suite.Seconds(longest), suite.Seconds(max(slowest(l.http), slowest(l.https)))),
	}
	connection := suite.Row{
		What: what + ": one WebSocket", Bound: "-", Held: true, Compared: "-",
		Measured: fmt.Sprintf("closed %d times, %d failed attempts, without it for at most %s", len(l.cuts), failed, suite.Seconds(away)),
	}
	if how.required {
		requests.Bound, requests.Held = "0 lost", lost == 0
		connection.Bound, connection.Held = "closed once a drain, 0 failed", failed == 0 && drainedFirst(l.cuts, l.deleted)
	}
	return []suite.Row{requests, connection}
}

func lostOf(samples []traffic.Sample) int {
	lost := 0
	for _, s := range samples {
		if s.Problem != "" {
			lost++
		}
	}
	return lost
}

// slowest returns the longest time until a good answer.
func slowest(samples []traffic.Sample) time.Duration {
	longest := time.Duration(0)
	for _, s := range samples {
		if s.Problem == "" {
			longest = max(longest, s.Done.Sub(s.Sent))
		}
	}
	return longest
}

// drainedFirst reports whether each rollout closed the WebSocket once, after the old router had drained.
func drainedFirst(cuts []traffic.Outage, deleted []time.Time) bool {
	if len(cuts) != len(deleted) {
		return false
	}
	for i, cut := range cuts {
		if cut.From.Before(deleted[i].Add(drained)) {
			return false
		}
	}
	return true
}

// replaced waits until there is one router, which is not the old one, and returns when that was deleted.
func (s *site) replaced(ctx context.Context, old types.UID) (deleted time.Time) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		pods, err := s.routers(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		for i := range pods {
			// The kubelet deletes the pod again, without a grace period, when its containers have ended.
			grace := ptr.Deref(pods[i].DeletionGracePeriodSeconds, 0)
			if pods[i].UID == old && grace > 0 {
				deleted = pods[i].DeletionTimestamp.Add(-time.Duration(grace) * time.Second)
			}
		}
		g.Expect(pods).To(HaveLen(1))
		g.Expect(pods[0].UID).NotTo(Equal(old))
	}).Should(Succeed())
	return deleted
}

func (s *site) setMigrate(ctx context.Context, value int) {
	GinkgoHelper()
	onNode(ctx, s.Kind, s.node, "sysctl", "--write", fmt.Sprintf("%s=%d", migrate, value))
}

// runEcho runs a server of WebSockets behind the router until the end of the spec. On the host network it also answers
// the requests of the control.
func (s *site) runEcho(ctx context.Context) {
	GinkgoHelper()
	binary := suite.Must(programs.Build(ctx, programs.WebServer, GinkgoWriter))
	name, archive := programs.WebServer.Name, filepath.Join(GinkgoT().TempDir(), "echo.tar")
	Expect(images.Write(archive, images.Image{Name: echoImage, Files: map[string]string{name: binary}, Entrypoint: []string{"/" + name}})).To(Succeed())
	Expect(s.Kind.Load(ctx, archive)).To(Succeed())
	for _, object := range served(echoName, echoAddress, echoPort, corev1.PodSpec{
		NodeName: s.node, HostNetwork: true, TerminationGracePeriodSeconds: ptr.To[int64](0),
		Containers: []corev1.Container{{Name: "echo", Image: echoImage}},
	}) {
		Expect(s.Cluster.Client().Create(ctx, object)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) error {
			return client.IgnoreNotFound(s.Cluster.Client().Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground)))
		})
	}
}

// Only the option with tcp_migrate_req is required to lose nothing.
func TestJudge(t *testing.T) {
	begin := time.Unix(1000, 0)
	at := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
	samples := func(problems ...string) []traffic.Sample {
		var all []traffic.Sample
		for i, problem := range problems {
			all = append(all, traffic.Sample{Sent: at(float64(i)), Done: at(float64(i) + 0.25), Problem: problem})
		}
		return all
	}
	good, bad := samples("", "", ""), samples("", "reset", "")
	cut := func(from, to float64, failed int) traffic.Outage {
		return traffic.Outage{From: at(from), To: at(to), Failed: 1 + failed}
	}
	deleted := []time.Time{at(0), at(10)}
	drainedCuts := []traffic.Outage{cut(3, 3.1, 0), cut(13.5, 13.6, 0)}
	for _, test := range []struct {
		name                       string
		load                       load
		requestsHeld, cutsHeld     bool
		requests, connectionFigure string
	}{
		{"nothing lost", load{good, good, good, drainedCuts, deleted, at(20)}, true, true,
			"lost http 0 of 3, https 0 of 3; longest outage 0.00 s; slowest answer 0.25 s", "closed 2 times, 0 failed attempts, without it for at most 0.10 s"},
		{"a request over HTTP", load{bad, good, good, drainedCuts, deleted, at(20)}, false, true, "lost http 1 of 3, https 0 of 3; longest outage 1.00 s", ""},
		{"a request over HTTPS", load{good, bad, good, drainedCuts, deleted, at(20)}, false, true, "lost http 0 of 3, https 1 of 3; longest outage 1.00 s", ""},
		{"closed before the drain has ended", load{good, good, good, []traffic.Outage{cut(3, 3, 0), cut(12.9, 13, 0)}, deleted, at(20)}, true, false, "", ""},
		{"closed twice in a drain", load{good, good, good, append(drainedCuts, cut(14, 14, 0)), deleted, at(20)}, true, false, "", "closed 3 times"},
		{"not opened at once", load{good, good, good, []traffic.Outage{cut(3, 4, 2), cut(13, 13, 0)}, deleted, at(20)}, true, false,
			"", "2 failed attempts, without it for at most 1.00 s"},
	} {
		rows := test.load.judge(sharing{name: "shared", required: true})
		if rows[0].Held != test.requestsHeld || rows[1].Held != test.cutsHeld ||
			!strings.Contains(rows[0].Measured, test.requests) || !strings.Contains(rows[1].Measured, test.connectionFigure) {
			t.Errorf("%s: %+v", test.name, rows)
		}
		if rows := test.load.judge(sharing{name: "today"}); !rows[0].Held || !rows[1].Held {
			t.Errorf("%s, not required: %+v", test.name, rows)
		}
	}
}
