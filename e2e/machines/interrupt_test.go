// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"os"
	"os/exec"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"github.com/solonode/sno/e2e/framework/suite"
)

// The suite runs itself, with other names of machines.
var _ = DescribeTable("Ctrl-C removes every container, disk, network and temporary file", Label("interrupt", suite.Long),
	func(ctx SpecContext, line string) {
		command := exec.Command(suite.Must(os.Executable()), "-test.run=^TestMachines$", "-ginkgo.v", "-ginkgo.label-filter=render", "-name=interrupted", "-out="+GinkgoT().TempDir())
		suite.Interrupt(ctx, command, func(session *gexec.Session) { Eventually(ctx, session).Should(gbytes.Say(line)) })
	},
	Entry("before a machine is made", "starts by kubeadm", SpecTimeout(stepTimeout)),
	Entry("when its disk is filled", "its disk is filled", SpecTimeout(stepTimeout)),
	Entry("when it has started", "it runs at", SpecTimeout(stepTimeout)),
	Entry("when its API server is ready", "the API server is ready", SpecTimeout(stepTimeout)),
	Entry("when the other machine is made", "starts from the static pods", SpecTimeout(stepTimeout)),
	Entry("after rendering", "sno-render took", SpecTimeout(stepTimeout)),
	Entry("when the objects are created", "the objects of sno-render are created", SpecTimeout(stepTimeout)),
)
