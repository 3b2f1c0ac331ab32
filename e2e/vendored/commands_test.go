// SPDX-License-Identifier: Apache-2.0

package vendored

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/steps"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/testcluster/assets"
)

func write(mode os.FileMode, path, text string) string {
	GinkgoHelper()
	Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	Expect(os.WriteFile(path, []byte(text), mode)).To(Succeed())
	return path
}

var _ = Describe("A command that is started instead of a stand-in", Label(suite.Long), func() {
	It("runs in this folder with its own kubeconfig, is restarted as a container is, and its definitions replace those of the cluster", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		script := write(0o700, filepath.Join(dir, "operator"), `#!/bin/sh
echo "started with $* in $PWD as $KUBECONFIG"
trap 'echo terminated; exit 0' TERM
while :; do sleep 1000 & wait $!; done
`)
		deaf := write(0o700, filepath.Join(dir, "deaf"), "#!/bin/sh\ntrap '' TERM\necho started\nwhile :; do sleep 1000; done\n")
		definition := givenMachineConfigurations(ctx, filepath.Join(dir, "crds"))
		operators, err := framework.ReadOperators(
			[]string{"machineconfig=" + script + " --kubeconfig={kubeconfig} 'one word'", "console=" + deaf}, []string{filepath.Join(dir, "crds")})
		Expect(err).NotTo(HaveOccurred())
		progress := gbytes.NewBuffer()
		s := steps.Start(ctx, framework.Config{
			Scenario: "none-sno", Hosts: map[framework.Module][]string{framework.MachineConfig: {"--stock"}, framework.Console: {"--stock"}}, Operators: operators,
			Progress: progress,
		})
		live := &apiextensionsv1.CustomResourceDefinition{}
		Expect(s.Kube.Get(ctx, client.ObjectKey{Name: definition}, live)).To(Succeed())
		Expect(live.Spec.Names.ShortNames).To(Equal([]string{"given"}))
		program := s.Cluster.Program(framework.MachineConfig.Host().Name)
		log := func() string { return program.LogTail(10_000) }
		started := func(times int) {
			GinkgoHelper()
			Eventually(ctx, log).Should(WithTransform(func(text string) int { return strings.Count(text, "started") }, Equal(times)))
		}
		started(1)
		folder := suite.Must(os.Getwd())
		kubeconfig := filepath.Join(s.Cluster.Dir(), "administrator-given-machine-config-operator.kubeconfig")
		Expect(log()).To(Equal(fmt.Sprintf("started with --kubeconfig=%s one word in %s as %s", kubeconfig, folder, kubeconfig)))
		Expect(s.WaitHost(ctx, framework.MachineConfig, time.Millisecond)).To(Succeed(), "nothing waits for the conditions of a command")

		By("Wanted ends are no exits")
		waiting, cancel := s.UntilOperatorEnds(ctx)
		defer cancel()
		Expect(s.RestartOperator(ctx, framework.MachineConfig)).To(Succeed())
		started(2)
		began := time.Now()
		Expect(s.RestartOperator(ctx, framework.Console)).To(Succeed())
		Expect(time.Since(began)).To(BeNumerically(">=", 30*time.Second), "it ignores SIGTERM")
		Expect(waiting.Err()).NotTo(HaveOccurred())
		Expect(log()).To(ContainSubstring("terminated"))

		By("Others are reported, and it starts again")
		Expect(syscall.Kill(program.PID(), syscall.SIGKILL)).To(Succeed())
		Eventually(ctx, waiting.Done()).Should(BeClosed())
		cause := context.Cause(waiting)
		Expect(cause).To(MatchError(framework.ErrOperatorEnded))
		for _, text := range []string{cause.Error(), string(progress.Contents())} {
			Expect(text).To(And(ContainSubstring("ended by itself: machineconfig, signal: killed ("+script), ContainSubstring("log ends with:\nstarted with --kubeconfig")))
		}
		started(3)
		Expect(s.HostOperators()).To(Equal([]report.Operator{
			{Module: "machineconfig", Command: script + " --kubeconfig={kubeconfig} 'one word'", Exits: 1}, {Module: "console", Command: deaf},
		}))

		By("A wanted start comes first")
		Expect(syscall.Kill(program.PID(), syscall.SIGKILL)).To(Succeed())
		<-program.Exited()
		Expect(s.RestartOperator(ctx, framework.MachineConfig)).To(Succeed())
		Expect(s.StopOperators(ctx)).To(Succeed())
		Consistently(ctx, program.PID).WithTimeout(11*time.Second).Should(BeZero(), "it does not start again after the back-off")
	})

	It("and that the kernel does not start is an error", func(ctx SpecContext) {
		operators := suite.Must(framework.ReadOperators([]string{"auth=" + write(0o700, filepath.Join(GinkgoT().TempDir(), "operator"), "no program")}, nil))
		s, err := framework.Start(ctx, framework.Config{Scenario: "none-sno", Hosts: map[framework.Module][]string{framework.Auth: nil}, Operators: operators})
		if err == nil {
			s.Stop()
		}
		Expect(err).To(And(MatchError(syscall.ENOEXEC), MatchError(ContainSubstring("operator of auth: start authentication-operator"))))
	})
})

// givenMachineConfigurations writes another definition of a kind that not every cluster has, and returns its name.
func givenMachineConfigurations(ctx context.Context, folder string) string {
	GinkgoHelper()
	module := suite.Must(assets.ModuleFolder(ctx, "github.com/openshift/api"))
	text := suite.Must(os.ReadFile(filepath.Join(module, "operator", "v1", "zz_generated.crd-manifests", "0000_80_machine-config_01_machineconfigurations-Default.crd.yaml")))
	definition := &apiextensionsv1.CustomResourceDefinition{}
	Expect(yaml.Unmarshal(text, definition)).To(Succeed())
	definition.Spec.Names.ShortNames = []string{"given"}
	text = suite.Must(yaml.Marshal(definition))
	write(0o600, filepath.Join(folder, "definition.yaml"), string(text))
	return definition.Name
}
