// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/testcluster/agnhost"
	"github.com/solonode/sno/testcluster/assets"
)

var (
	testPattern = flag.String("tests", "", "only those of Kubernetes' conformance tests whose names match this regular expression")
	testProcs   = flag.Int("test-procs", 4, "Kubernetes' conformance tests in parallel, except those that are Serial")
)

const (
	// singleNode is the scenario of Kubernetes' tests: a node that runs all workloads.
	singleNode = "none-sno"
	// testsTimeout is longer than all tests one after the other.
	testsTimeout = 6 * time.Hour
	// stopDelay is for the tests to write their report after an interruption. The cluster is removed with their objects.
	stopDelay = 10 * time.Second
)

// What is skipped is in skips.yaml, each with its reason; failed tests run a second time, alone (R-SUITE-1).
var _ = Describe("Kubernetes' conformance tests on a single node", Label("kubernetes", optIn), Serial, Ordered, ContinueOnFailure, func() {
	var (
		reasons        skips
		run, forImages []kubeTest
		on             results
	)
	BeforeAll(func(ctx SpecContext) {
		var all []kubeTest
		var err error
		all, reasons, err = readTests(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(reasons.faults(all)).To(BeEmpty())
		run, forImages = reasons.split(all)
		pattern := suite.Must(regexp.Compile(*testPattern))
		other := func(test kubeTest) bool { return !pattern.MatchString(test.Codename) }
		run, forImages = slices.DeleteFunc(run, other), slices.DeleteFunc(forImages, other)
	}, NodeTimeout(10*time.Minute))

	It("pass with all controllers", Label("modules-on"), NodeTimeout(testsTimeout), func(ctx SpecContext) {
		on = runTests(ctx, "on", run, func(r result, _ string) bool { return r.image == "" })
		Expect(on.differences(nil, nil)).To(BeEmpty(), "tests that did not pass")
	})

	It("have the same results without controllers, but for those that need the modules, which fail", Label("modules-off"), NodeTimeout(testsTimeout), func(ctx SpecContext) {
		mustFail := reasons.of(needsModules)
		off := runTests(ctx, "off", run, func(r result, name string) bool { return r.image == "" && !slices.Contains(mustFail, name) })
		Expect(off.differences(on, mustFail)).To(BeEmpty(), "tests with other results than with the modules on")
	})

	It("need the image that skips.yaml names, where they are skipped because of one", Label("images"), NodeTimeout(testsTimeout), func(ctx SpecContext) {
		ran := runTests(ctx, "images", forImages, func(result, string) bool { return false })
		for _, one := range reasons {
			for _, name := range one.Tests {
				if r, ok := ran[name]; ok {
					Expect(r.image).To(Equal(one.Image), "the image that %q needs; it %s", name, r.outcome)
				}
			}
		}
	})
})

// runTests creates a cluster, with the controllers unless the mode is off, and runs tests on it. Those that have failed
// run a second time, alone, if they may.
func runTests(ctx context.Context, mode string, tests []kubeTest, twice func(r result, name string) bool) results {
	GinkgoHelper()
	Expect(tests).NotTo(BeEmpty(), "-tests selects no test")
	programs := suite.Must(assets.EnsureSuite(ctx, GinkgoWriter))
	node := suite.Must(assets.EnsureNode(ctx, GinkgoWriter))
	listed := suite.Must(exec.CommandContext(ctx, programs.Program("e2e.test"), "--list-images").Output())
	agnhosts, pauses := nodeImages(strings.Fields(string(listed)))
	Expect(agnhosts).NotTo(BeEmpty())
	Expect(pauses).NotTo(BeEmpty())
	archive := suite.Must(agnhost.Ensure(ctx, programs, agnhosts, GinkgoWriter))

	e := &Env{}
	DeferCleanup(finish, e)
	e.Start(ctx, singleNode, *clusterName+"-"+mode, mode != "off")
	settled := func() {
		if mode != "off" {
			e.WaitSettled(ctx)
		}
	}
	settled()
	Expect(e.Kind.Load(ctx, archive)).To(Succeed())
	Expect(e.Kind.Tag(ctx, doNothing, pauses...)).To(Succeed())
	folder := filepath.Join(suite.Out(), "modules-"+mode)
	Expect(os.RemoveAll(folder)).To(Succeed())
	attempt := func(folder string, procs int, tests []kubeTest) results {
		By(strconv.Itoa(len(tests)) + " tests, " + strconv.Itoa(procs) + " in parallel; they report to " + filepath.Join(folder, "e2e.log"))
		Expect(os.MkdirAll(folder, 0o755)).To(Succeed())
		text := suite.Must(e2eTest(ctx, programs, folder, procs, tests, "--kubeconfig="+e.Kind.Kubeconfig(), "--kubectl-path="+node.Program("kubectl")))
		all := suite.Must(readResults(text, tests))
		return all
	}
	all := attempt(folder, *testProcs, tests)
	again := slices.DeleteFunc(slices.Clone(tests), func(test kubeTest) bool {
		r := all[test.Codename]
		return r.outcome != failed || !twice(r, test.Codename)
	})
	if len(again) > 0 {
		for name, second := range attempt(filepath.Join(folder, "again"), 1, again) {
			second.again = second.outcome == passed
			all[name] = second
		}
	}
	AddReportEntry("modules "+mode, all.String())
	if len(all.names(failed)) > 0 {
		Expect(e.Logs(filepath.Join(folder, "logs"))).To(Succeed())
	}
	settled()
	return all
}

// e2eTest runs tests of e2e.test, those that are Serial after the others, and returns Ginkgo's report. The folder
// receives the log.
func e2eTest(ctx context.Context, programs assets.Assets, folder string, procs int, tests []kubeTest, flags ...string) ([]byte, error) {
	log, err := os.Create(filepath.Join(folder, "e2e.log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	const report = "report.json"
	cmd := exec.CommandContext(ctx, programs.Program("ginkgo"), append([]string{
		"--procs=" + strconv.Itoa(procs), "--timeout=" + testsTimeout.String(), "--no-color", "--silence-skips", "--focus=" + focus(tests),
		"--output-dir=" + folder, "--json-report=" + report, programs.Program("e2e.test"), "--",
		"--provider=skeleton", "--disable-log-dump", "--report-dir=" + folder,
	}, flags...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, log, log
	// The group is for the processes of e2e.test, which outlive ginkgo.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = stopDelay
	bad := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	text, err := os.ReadFile(filepath.Join(folder, report))
	if err != nil {
		return nil, errors.Join(bad, err)
	}
	return text, nil
}

// focus returns the regular expression that selects exactly these tests. Ginkgo matches it with the name of the suite
// and that of the test.
func focus(tests []kubeTest) string {
	var names []string
	for _, test := range tests {
		names = append(names, regexp.QuoteMeta(test.Codename))
	}
	return "^Kubernetes e2e suite (" + strings.Join(names, "|") + ")$"
}

// nodeImages returns those of the images of e2e.test that a node of these clusters has: agnhost and pause.
func nodeImages(names []string) (agnhosts, pauses []string) {
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		switch {
		case strings.HasPrefix(name, "registry.k8s.io/e2e-test-images/agnhost:"):
			agnhosts = append(agnhosts, name)
		case strings.HasPrefix(name, "registry.k8s.io/pause:"):
			pauses = append(pauses, name)
		}
	}
	return agnhosts, pauses
}

func TestFocus(t *testing.T) {
	pattern := regexp.MustCompile(focus(kubeTests("[sig-a] a (b) [Conformance]", "[sig-a] c")))
	for text, want := range map[string]bool{
		"Kubernetes e2e suite [sig-a] a (b) [Conformance]":       true,
		"Kubernetes e2e suite [sig-a] c":                         true,
		"Kubernetes e2e suite [sig-a] c and more":                false,
		"Kubernetes e2e suite [sig-b] [sig-a] c":                 false,
		"Kubernetes e2e suite [sig-a] a b [Conformance]":         false,
		"Kubernetes e2e suite [sig-a] a (b) [Conformance] again": false,
	} {
		if pattern.MatchString(text) != want {
			t.Errorf("%q: selected %t, want %t", text, !want, want)
		}
	}
}
