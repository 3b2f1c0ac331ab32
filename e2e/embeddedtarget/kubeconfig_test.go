// SPDX-License-Identifier: Apache-2.0

package embeddedtarget

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

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/existing"
	"github.com/solonode/sno/conformance/suites"
	"github.com/solonode/sno/e2e/demo"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/scenario"
)

const (
	suiteAgent = "sno-tests"
	// mostOnAverage and mostInASecond limit the requests per second to such a cluster.
	mostOnAverage, mostInASecond = 50, 100
	// makeImage is set through make. No kubelet here pulls it.
	makeImage      = "registry.invalid/make:1"
	ginkgoVariable = "SNO_GINKGO_SUITE"
)

// klogLine matches output of client-go, such as warnings.
var klogLine = regexp.MustCompile(`(?m)^[IWEF][0-9]{4} .*$`)

func commands() []func(*testing.T, string) *exec.Cmd {
	return []func(*testing.T, string) *exec.Cmd{bySNOTests, byGinkgo, byMake}
}

func bySNOTests(t *testing.T, kubeconfig string) *exec.Cmd {
	binary, err := programs.Build(t.Context(), programs.SNOTests, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return exec.CommandContext(t.Context(), binary, "run", "--kubeconfig", kubeconfig, "--disruptive")
}

func byGinkgo(t *testing.T, kubeconfig string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestGinkgoSuite$", "-ginkgo.no-color")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, ginkgoVariable+"=1")
	return cmd
}

func byMake(t *testing.T, kubeconfig string) *exec.Cmd {
	root, err := programs.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "make", "--no-print-directory", "conformance", "KUBECONFIG="+kubeconfig, "DISRUPTIVE=1",
		"IMAGE="+makeImage, "CONFORMANCE_OUT="+t.TempDir())
	cmd.Dir = root
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS") })
	return cmd
}

// TestGinkgoSuite is the suite of an operator's repository with all tiers, for TestByKubeconfig.
func TestGinkgoSuite(t *testing.T) {
	if os.Getenv(ginkgoVariable) == "" {
		t.Skip("TestByKubeconfig runs it on a cluster")
	}
	rest.SetDefaultWarningHandler(rest.WarningLogger{}) // as in a repository that sets none
	suites.Describe(suites.Inputs{Tiers: catalogue.Tiers(), Target: func(ctx context.Context) (cluster.Target, error) {
		return existing.Target(ctx, existing.Options{Tiers: catalogue.Tiers(), Progress: ginkgo.GinkgoWriter})
	}})
	gomega.RegisterFailHandler(ginkgo.Fail)
	suite, reporter := suites.Configuration()
	ginkgo.RunSpecs(t, "all of it", suite, reporter)
}

// TestByKubeconfig checks clusters of `make run` with only a kubeconfig. Every applicable check passes, only the suite
// prints output, and the number of requests is limited.
func TestByKubeconfig(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes; make proof runs it")
	}
	t.Parallel()
	for i, s := range scenario.All() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			cluster := keptCluster(t, s.Name)
			cmd := commands()[i%len(commands())](t, cluster.KubeconfigPath())
			offset, err := cluster.AuditOffset(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			output, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%s: %v\n%s", cmd, err, output)
			}
			if used := slices.Contains(cmd.Args, "IMAGE="+makeImage); used && !strings.Contains(string(output), "run image "+makeImage) {
				t.Errorf("IMAGE= does not reach the run:\n%s", output)
			}
			if foreign := klogLine.FindAllString(string(output), -1); len(foreign) > 0 {
				t.Errorf("the output contains %d lines of client-go, such as %s", len(foreign), foreign[0])
			}
			events, _, err := cluster.AuditEvents(t.Context(), offset, embedded.AuditFilter{UserAgent: suiteAgent})
			if err != nil {
				t.Fatal(err)
			}
			what, err := requestRate(events)
			if err != nil {
				t.Error(err)
			}
			t.Log(what)
			for _, event := range events {
				if event.ObjectRef != nil && event.ObjectRef.Resource == "secrets" {
					t.Errorf("a Secret was requested: %s %s", event.Verb, event.RequestURI)
				}
			}
		})
	}
}

// keptCluster returns a cluster that `make run` keeps up until the end of the test.
func keptCluster(t *testing.T, name string) *embedded.Cluster {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	up, ended := make(chan *embedded.Cluster, 1), make(chan error, 1)
	var out bytes.Buffer
	go func() {
		ended <- demo.Run(ctx, demo.Options{Scenario: name, Out: &out, OnReady: func(c *embedded.Cluster) { up <- c }})
	}()
	select {
	case cluster := <-up:
		t.Cleanup(func() {
			cancel()
			<-ended
		})
		return cluster
	case err := <-ended:
		cancel()
		t.Fatalf("make run SCENARIO=%s: %v\n%s", name, err, out.String())
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
