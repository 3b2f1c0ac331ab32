package embeddedtarget

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"

	"github.com/solonode/sno/conformance/checks"
	"github.com/solonode/sno/conformance/existing"
	"github.com/solonode/sno/conformance/suites"
	"github.com/solonode/sno/e2e/mainjob"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/e2e/sample"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/scenario"
)

const (
	// suiteAgent is what the suite calls itself on a cluster that is not its own.
	suiteAgent = "sno-tests"
	// mostOnAverage and mostInASecond are the requests that such a cluster may be sent, in a second.
	mostOnAverage, mostInASecond = 50, 100
	// ginkgoVariable has TestGinkgoSuite run.
	ginkgoVariable = "SNO_GINKGO_SUITE"
)

// klogLine is what client-go prints, of warnings for example.
var klogLine = regexp.MustCompile(`(?m)^[IWEF][0-9]{4} .*$`)

// ways are how a person has the suite check a cluster, all tiers.
func ways() []func(*testing.T, string) *exec.Cmd {
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
	cmd := exec.CommandContext(t.Context(), "make", "--no-print-directory", "conformance", "KUBECONFIG="+kubeconfig, "DISRUPTIVE=1", "CONFORMANCE_OUT="+t.TempDir())
	cmd.Dir = root
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS") })
	return cmd
}

// TestGinkgoSuite is the suite of an operator's repository, all tiers, for TestByKubeconfig.
func TestGinkgoSuite(t *testing.T) {
	if os.Getenv(ginkgoVariable) == "" {
		t.Skip("TestByKubeconfig runs it on a cluster")
	}
	rest.SetDefaultWarningHandler(rest.WarningLogger{}) // as in a repository that sets none
	suites.Describe(suites.Inputs{Tiers: checks.Tiers(), Target: func(ctx context.Context) (checks.Target, error) {
		return existing.Target(ctx, existing.Options{Tiers: checks.Tiers(), Progress: ginkgo.GinkgoWriter})
	}})
	gomega.RegisterFailHandler(ginkgo.Fail)
	suite, reporter := suites.Configuration()
	ginkgo.RunSpecs(t, "all of it", suite, reporter)
}

// TestByKubeconfig has the suite check clusters that `make run` leaves up, as a stranger's: it knows a kubeconfig and nothing else. Every check that
// applies passes, nothing but the suite's own words is printed, and the API server has hardly noticed.
func TestByKubeconfig(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes; make proof runs it")
	}
	t.Parallel()
	for i, s := range sample.Of(t, scenario.All(), len(ways())) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			cluster := leftUp(t, s.Name)
			cmd := ways()[i%len(ways())](t, cluster.KubeconfigPath())
			offset, err := cluster.AuditOffset(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			output, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%s: %v\n%s", cmd, err, output)
			}
			if strange := klogLine.FindAllString(string(output), -1); len(strange) > 0 {
				t.Errorf("%d lines of client-go are among the answers, such as %s", len(strange), strange[0])
			}
			events, _, err := cluster.AuditEvents(t.Context(), offset, embedded.AuditFilter{UserAgent: suiteAgent})
			if err != nil {
				t.Fatal(err)
			}
			if err := bearable(t, events); err != nil {
				t.Error(err)
			}
		})
	}
}

// leftUp is a cluster as `make run` leaves it up. It goes with the test.
func leftUp(t *testing.T, name string) *embedded.Cluster {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	up, ended := make(chan *embedded.Cluster, 1), make(chan error, 1)
	var out bytes.Buffer
	go func() {
		ended <- mainjob.Run(ctx, mainjob.Options{Scenario: name, Out: &out, Up: func(c *embedded.Cluster) { up <- c }})
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

// bearable is an error where the requests were more than a cluster at work should be sent.
func bearable(t *testing.T, events []auditv1.Event) error {
	t.Helper()
	received := map[string]time.Time{}
	for i := range events { // a watch is recorded when it begins and when it ends
		received[string(events[i].AuditID)] = events[i].RequestReceivedTimestamp.Time
	}
	var times []time.Time
	for _, at := range received {
		times = append(times, at)
	}
	if len(times) < 2 {
		return fmt.Errorf("%d requests of %s are in the audit log", len(times), suiteAgent)
	}
	slices.SortFunc(times, time.Time.Compare)
	most, first := 0, 0
	for last := range times {
		for times[last].Sub(times[first]) >= time.Second {
			first++
		}
		most = max(most, last-first+1)
	}
	length := times[len(times)-1].Sub(times[0]).Seconds()
	average := float64(len(times)) / length
	t.Logf("%d requests in %.0f s: %.1f a second, at most %d in any", len(times), length, average, most)
	if average >= mostOnAverage || most >= mostInASecond {
		return fmt.Errorf("%.1f requests a second, want fewer than %d; at most %d in any, want fewer than %d", average, mostOnAverage, most, mostInASecond)
	}
	return nil
}
