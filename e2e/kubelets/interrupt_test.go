// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/testcluster/engine"
	"github.com/solonode/sno/testcluster/nodeimage"
)

// phaseLimit bounds the wait for a phase and for the end after it.
const phaseLimit = 6 * time.Minute

// interruptEnv identifies the processes of a run, which inherit it. Its value is a folder.
const interruptEnv = "SNO_TEST_INTERRUPT"

// The suite of this process runs once more, by Ginkgo's program, with another filter.
var _ = Describe("Ctrl-C leaves no container, volume, network, image, kubeconfig, file or process behind", Label("interrupt", optIn), Serial, func() {
	DescribeTable("in each phase:",
		func(ctx SpecContext, filter, line string) {
			interrupt(ctx, 1, filter, func(session *gexec.Session) {
				Eventually(ctx, session).WithTimeout(phaseLimit).Should(gbytes.Say(line))
			})
		},
		Entry("programs and images are built", NodeTimeout(3*phaseLimit), "--label-filter=smoke", "Starting a cluster of real kubelets"),
		Entry("nodes are made", NodeTimeout(3*phaseLimit), "--label-filter=smoke", "Preparing nodes"),
		Entry("the control plane starts", NodeTimeout(3*phaseLimit), "--label-filter=smoke", "Starting control-plane"),
		Entry("objects and stand-ins are installed", NodeTimeout(3*phaseLimit), "--label-filter=smoke", "is up: export KUBECONFIG"),
		Entry("controllers settle", NodeTimeout(3*phaseLimit), "--label-filter=smoke", "Waiting until the controllers have settled"),
		Entry("workers join", NodeTimeout(3*phaseLimit), "--label-filter=smoke", "The later workers join"),
		Entry("the conformance suite runs", NodeTimeout(3*phaseLimit), "--label-filter=smoke", "Running the conformance suite"),
		Entry("a router with traffic is rolled out", NodeTimeout(3*phaseLimit), "--focus=ends.its.rollouts", "Rolling the router out"),
		Entry("a load balancer is made", NodeTimeout(3*phaseLimit), "--focus=allows.no.eviction.of.another.guard", "Making a load balancer"),
	)

	It("with two clusters", NodeTimeout(4*phaseLimit), func(ctx SpecContext) {
		e, err := engine.Find(ctx)
		Expect(err).NotTo(HaveOccurred())
		interrupt(ctx, 2, "--focus=survive.it|Nodes.that.request.a.drain", func(*gexec.Session) {
			Eventually(ctx, e.Output).WithArguments("ps", "--format", "{{.Names}}").WithTimeout(2 * phaseLimit).Should(
				And(ContainSubstring("interrupted-control-plane"), ContainSubstring("interrupted-2-control-plane")))
		})
	})
})

func interrupt(ctx context.Context, processes int, filter string, reached func(*gexec.Session)) {
	GinkgoHelper()
	// The image of a node is cached.
	e, err := engine.Find(ctx)
	Expect(err).NotTo(HaveOccurred())
	_, _, err = nodeimage.Ensure(ctx, e, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	before, folder := resources(ctx, e), GinkgoT().TempDir()
	out := filepath.Join(folder, "out")
	self, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	run := exec.Command("go", "run", "github.com/onsi/ginkgo/v2/ginkgo", "-v", "--grace-period=2m", "--procs="+strconv.Itoa(processes), filter,
		"--output-dir="+out, self, "--", "-test.run=^TestKubelets$", "-name=interrupted", "-tiers=static", "-out="+out)
	run.Env = append(os.Environ(), interruptEnv+"="+folder, "TMPDIR="+folder)
	// A terminal sends the signal to its whole process group.
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	session, err := gexec.Start(run, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	end := func(ctx context.Context) {
		_ = syscall.Kill(-run.Process.Pid, syscall.SIGINT) // it may have ended
		Eventually(ctx, session).WithTimeout(phaseLimit).Should(gexec.Exit())
	}
	DeferCleanup(end)
	reached(session)
	end(ctx)
	Expect(session.ExitCode()).NotTo(BeZero())
	Expect(session.Out.Contents()).To(ContainSubstring("Interrupted by User"))
	Expect(resources(ctx, e)).To(Equal(before))
	Expect(processesWith(interruptEnv + "=" + folder)).To(BeEmpty())
	Expect(os.RemoveAll(out)).To(Succeed())
	Expect(os.ReadDir(folder)).To(BeEmpty())
}

// resources returns everything in the engine, and the kubeconfig files of clusters. The cache of builds is not included.
func resources(ctx context.Context, e engine.Engine) map[string][]string {
	GinkgoHelper()
	found := map[string][]string{}
	for what, args := range map[string][]string{
		"containers": {"ps", "--all", "--format", "{{.Names}}"},
		"volumes":    {"volume", "ls", "--quiet"},
		"networks":   {"network", "ls", "--format", "{{.Name}}"},
		"images":     {"image", "ls", "--all", "--no-trunc", "--format", "{{.Repository}}:{{.Tag}} {{.ID}}"},
	} {
		out, err := e.Output(ctx, args...)
		Expect(err).NotTo(HaveOccurred())
		found[what] = slices.Sorted(strings.Lines(out))
	}
	cache, err := assets.CacheDir()
	Expect(err).NotTo(HaveOccurred())
	found["kubeconfigs"], err = filepath.Glob(filepath.Join(filepath.Dir(cache), "kind", "*.kubeconfig*"))
	Expect(err).NotTo(HaveOccurred())
	return found
}

// processesWith returns the command lines of the processes with this variable.
func processesWith(variable string) []string {
	GinkgoHelper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	Expect(err).NotTo(HaveOccurred())
	var found []string
	for _, file := range files {
		// Processes that end meanwhile or belong to other users cannot be read.
		text, _ := os.ReadFile(file)
		if slices.Contains(strings.Split(string(text), "\x00"), variable) {
			called, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			found = append(found, strings.ReplaceAll(string(called), "\x00", " "))
		}
	}
	return found
}
