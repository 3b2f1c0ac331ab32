// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/testcluster/engine"
)

// The suite runs itself, with other names of machines.
var _ = DescribeTable("Ctrl-C removes every container, disk, network and temporary file", Label("interrupt", suite.Long),
	func(ctx SpecContext, line string) {
		const name = "interrupted"
		before := resources(ctx, name)
		temporary := GinkgoT().TempDir()
		self, err := os.Executable()
		Expect(err).NotTo(HaveOccurred())
		command := exec.Command(self, "-test.run=^TestMachines$", "-ginkgo.v", "-ginkgo.label-filter=render", "-name="+name, "-out="+GinkgoT().TempDir())
		command.Env = append(os.Environ(), "TMPDIR="+temporary)
		// A terminal sends the signal to its whole process group.
		command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		session, err := gexec.Start(command, GinkgoWriter, GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { _ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) })
		Eventually(ctx, session).Should(gbytes.Say(line))
		Expect(syscall.Kill(-command.Process.Pid, syscall.SIGINT)).To(Succeed())
		Eventually(ctx, session).WithTimeout(time.Minute).Should(gexec.Exit(1))
		Expect(session).To(gbytes.Say("Interrupted by User"))
		Expect(resources(ctx, name)).To(Equal(before))
		Expect(os.ReadDir(temporary)).To(BeEmpty())
	},
	Entry("before a machine is made", "starts by kubeadm", SpecTimeout(stepTimeout)),
	Entry("when its disk is filled", "its disk is filled", SpecTimeout(stepTimeout)),
	Entry("when it has started", "it runs at", SpecTimeout(stepTimeout)),
	Entry("when its API server is ready", "the API server is ready", SpecTimeout(stepTimeout)),
	Entry("when the other machine is made", "starts from the static pods", SpecTimeout(stepTimeout)),
	Entry("after rendering", "sno-render took", SpecTimeout(stepTimeout)),
	Entry("when the objects are created", "the objects of sno-render are created", SpecTimeout(stepTimeout)),
)

// resources returns the names of what the engine has for machines with a prefix.
func resources(ctx context.Context, prefix string) (found []string) {
	e, err := engine.Find(ctx)
	Expect(err).NotTo(HaveOccurred())
	for _, list := range [][]string{
		{"ps", "--all", "--format", "{{.Names}}"}, {"volume", "ls", "--format", "{{.Name}}"}, {"network", "ls", "--format", "{{.Name}}"},
	} {
		names, err := e.Output(ctx, append(list, "--filter", "name="+prefix)...)
		Expect(err).NotTo(HaveOccurred())
		found = append(found, names)
	}
	return found
}
