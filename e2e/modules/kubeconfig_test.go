// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/solonode/sno/e2e/demo"
	"github.com/solonode/sno/e2e/framework/steps"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/scenario"
)

const (
	suiteAgent = "sno-tests"
	// mostOnAverage and mostInASecond limit the requests per second to such a cluster.
	mostOnAverage, mostInASecond = 50, 100
	// makeImage is set through make. No kubelet here pulls it.
	makeImage = "registry.invalid/make:1"
)

// klogLine matches output of client-go, such as warnings.
var klogLine = regexp.MustCompile(`(?m)^[IWEF][0-9]{4} .*$`)

// commands run the suite on a cluster of which they have only the kubeconfig.
var commands = []struct {
	name    string
	command func(ctx context.Context, kubeconfig string) *exec.Cmd
}{
	{"sno-tests", func(ctx context.Context, kubeconfig string) *exec.Cmd {
		binary := suite.Must(programs.Build(ctx, programs.SNOTests, GinkgoWriter))
		return exec.CommandContext(ctx, binary, "run", "--kubeconfig", kubeconfig, "--disruptive")
	}},
	{"the suite of an operator's repository", func(ctx context.Context, kubeconfig string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "go", "test", "-vet=off", "-count=1", "-v", "-timeout=1h", "-run=^TestHostSuite$", "./e2e/embeddedtarget", "-ginkgo.no-color")
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
		return cmd
	}},
	{"make conformance", func(ctx context.Context, kubeconfig string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "make", "--no-print-directory", "conformance", "KUBECONFIG="+kubeconfig, "DISRUPTIVE=1",
			"IMAGE="+makeImage, "CONFORMANCE_OUT="+GinkgoT().TempDir())
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS") })
		return cmd
	}},
}

var _ = Describe("A cluster of make run passes every applicable check by its kubeconfig, with few requests and no other output", Label(suite.Long), func() {
	for i, s := range scenario.All() {
		way := commands[i%len(commands)]
		It("on "+s.Name+", by "+way.name, func(ctx SpecContext) {
			cluster := keptCluster(ctx, s.Name)
			cmd := way.command(ctx, cluster.KubeconfigPath())
			offset := suite.Must(cluster.AuditOffset(ctx))
			output, err := cmd.CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), "%s\n%s", cmd, output)
			if slices.Contains(cmd.Args, "IMAGE="+makeImage) {
				Expect(string(output)).To(ContainSubstring("run image " + makeImage))
			}
			Expect(klogLine.FindAllString(string(output), -1)).To(BeEmpty(), "lines of client-go")
			events, _, err := cluster.AuditEvents(ctx, offset, embedded.AuditFilter{UserAgent: suiteAgent})
			Expect(err).NotTo(HaveOccurred())
			what := suite.Must(requestRate(events))
			AddReportEntry("requests", what)
			for _, event := range events {
				Expect(event.ObjectRef == nil || event.ObjectRef.Resource != "secrets").To(BeTrue(), "a Secret was requested: %s %s", event.Verb, event.RequestURI)
			}
		})
	}
})

// keptCluster returns a cluster that `make run` keeps up until the end of the spec.
func keptCluster(ctx context.Context, name string) *embedded.Cluster {
	GinkgoHelper()
	ctx, started := steps.Outliving(ctx)
	ctx, cancel := context.WithCancel(ctx)
	up, ended := make(chan *embedded.Cluster, 1), make(chan error, 1)
	var out bytes.Buffer
	go func() {
		ended <- demo.Run(ctx, demo.Options{Scenario: name, Out: &out, OnReady: func(c *embedded.Cluster) { up <- c }})
	}()
	select {
	case cluster := <-up:
		started()
		steps.UntilEnd(cluster, func() {
			cancel()
			<-ended
		})
		return cluster
	case err := <-ended:
		cancel()
		Fail(fmt.Sprintf("make run SCENARIO=%s: %v\n%s", name, err, out.String()))
		return nil
	}
}

// requestRate describes the rate of the requests, and returns an error if it is too high for a productive cluster.
func requestRate(events []auditv1.Event) (string, error) {
	received := map[types.UID]time.Time{}
	for i := range events { // a watch is recorded when it begins and when it ends
		received[events[i].AuditID] = events[i].RequestReceivedTimestamp.Time
	}
	times := slices.SortedFunc(maps.Values(received), time.Time.Compare)
	if len(times) < 2 {
		return "", fmt.Errorf("%d requests of %s are in the audit log", len(times), suiteAgent) //nolint:err113 // for the test
	}
	most, first := 0, 0
	for last := range times {
		for times[last].Sub(times[first]) >= time.Second {
			first++
		}
		most = max(most, last-first+1)
	}
	length := times[len(times)-1].Sub(times[0]).Seconds()
	average := float64(len(times)) / length
	what := fmt.Sprintf("%d requests in %.0f s: %.1f a second, at most %d in any", len(times), length, average, most)
	if average >= mostOnAverage || most >= mostInASecond {
		return what, fmt.Errorf("%s; want fewer than %d and %d", what, mostOnAverage, mostInASecond) //nolint:err113 // for the test
	}
	return what, nil
}

// Requests count once, in any order, on average and in the worst second, wherever that begins.
func TestRequestRate(t *testing.T) {
	began := time.Unix(1000, 0)
	requests := func(n int, from, pause time.Duration) []auditv1.Event {
		var events []auditv1.Event
		for i := range n {
			at := began.Add(from + time.Duration(i)*pause)
			for range 2 { // as for a watch
				events = append(events, auditv1.Event{AuditID: types.UID(at.String()), RequestReceivedTimestamp: metav1.NewMicroTime(at)})
			}
		}
		return events
	}
	slow := requests(60, 0, 2*time.Second)
	for name, test := range map[string]struct {
		events []auditv1.Event
		want   bool
	}{
		"none": {nil, false}, "few": {slow, true}, "40 a second": {requests(400, 0, 25*time.Millisecond), true}, "60 a second": {requests(600, 0, time.Second/60), false},
		"99 at once":             {slices.Concat(slow, requests(99, 10500*time.Millisecond, 10*time.Millisecond)), true},
		"100 at once":            {slices.Concat(slow, requests(100, 10500*time.Millisecond, 9*time.Millisecond)), false},
		"100 at once, backwards": {slices.Concat(requests(100, 10500*time.Millisecond, 9*time.Millisecond), slow), false},
	} {
		if what, err := requestRate(test.events); (err == nil) != test.want {
			t.Errorf("%s: %s: %v", name, what, err)
		}
	}
}
