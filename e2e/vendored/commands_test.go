// SPDX-License-Identifier: Apache-2.0

package vendored

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/shlex"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	configv1 "github.com/openshift/api/config/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/steps"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/testcluster/scenario"
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
		folder, err := os.Getwd()
		Expect(err).NotTo(HaveOccurred())
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
		operators, err := framework.ReadOperators([]string{"auth=" + write(0o700, filepath.Join(GinkgoT().TempDir(), "operator"), "no program")}, nil)
		Expect(err).NotTo(HaveOccurred())
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
	module, err := assets.ModuleFolder(ctx, "github.com/openshift/api")
	Expect(err).NotTo(HaveOccurred())
	text, err := os.ReadFile(filepath.Join(module, "operator", "v1", "zz_generated.crd-manifests", "0000_80_machine-config_01_machineconfigurations-Default.crd.yaml"))
	Expect(err).NotTo(HaveOccurred())
	definition := &apiextensionsv1.CustomResourceDefinition{}
	Expect(yaml.Unmarshal(text, definition)).To(Succeed())
	definition.Spec.Names.ShortNames = []string{"given"}
	text, err = yaml.Marshal(definition)
	Expect(err).NotTo(HaveOccurred())
	write(0o600, filepath.Join(folder, "definition.yaml"), string(text))
	return definition.Name
}

// pageOperators are the operators of docs/ci.md and their modules.
var pageOperators = map[string]framework.Module{
	"ingress": framework.Ingress, "console": framework.Console, "auth": framework.Auth, "etcd": framework.EtcdGuard, "machineconfig": framework.MachineConfig,
	"approver": framework.Approver,
}

var (
	shellBlocks = regexp.MustCompile("(?s)<!-- guide: run by proof -->\n```sh\n(.*?)```")
	binaryWord  = regexp.MustCompile(`\./[a-z-]+`)
)

// pageArguments runs the commands of docs/ci.md that set the variables, and returns the words of each, with a test
// program that checks what the operator checks instead of its binary.
func pageArguments(ctx context.Context) map[string][]string {
	GinkgoHelper()
	page, err := os.ReadFile(filepath.Join("docs", "ci.md"))
	Expect(err).NotTo(HaveOccurred())
	dir := GinkgoT().TempDir()
	strict := filepath.Join(dir, "strict-operator")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", strict, "./e2e/vendored/testdata/strict-operator").CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	write(0o600, filepath.Join(dir, "machine-config-operator", "templates", "master"), "")
	script := "set -e\n"
	for _, block := range shellBlocks.FindAllStringSubmatch(string(page), -1) {
		if strings.Contains(block[1], "$all") || strings.Contains(block[1], "all=") {
			script += block[1]
		}
	}
	for name := range pageOperators {
		script += `printf %s "$` + name + `" >` + filepath.Join(dir, name) + "\n"
	}
	command := exec.CommandContext(ctx, "sh", "-c", script)
	command.Env = append(os.Environ(), "TMPDIR="+dir)
	out, err = command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s\n%s", out, script)
	root, err := os.Getwd()
	Expect(err).NotTo(HaveOccurred())
	arguments := map[string][]string{}
	for name := range pageOperators {
		text, err := os.ReadFile(filepath.Join(dir, name))
		Expect(err).NotTo(HaveOccurred())
		words, err := shlex.Split(strings.NewReplacer("e2e/objects", filepath.Join(root, "e2e", "objects"), "machine-config-operator/templates",
			filepath.Join(dir, "machine-config-operator", "templates")).Replace(string(text)))
		Expect(err).NotTo(HaveOccurred())
		Expect(words).NotTo(BeEmpty(), name)
		last := len(words) - 1
		words[last] = binaryWord.ReplaceAllLiteralString(words[last], strict+" "+name)
		arguments[name] = words
	}
	return arguments
}

// The program checks its flags, variables, objects and status as the real operators do.
var _ = It("With the words of docs/ci.md every operator starts, and without a part of these it does not", Label(suite.Long), func(ctx SpecContext) {
	arguments := pageArguments(ctx)
	var given framework.OperatorFlags
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	given.Bind(flags)
	hosts := map[framework.Module][]string{}
	seen := map[string]bool{} // a folder must be given once
	for name, module := range pageOperators {
		hosts[module] = nil
		for pair := range slices.Chunk(arguments[name], 2) {
			if text := strings.Join(pair, ""); !seen[text] {
				seen[text] = true
				Expect(flags.Parse(pair)).To(Succeed())
			}
		}
	}
	operators, err := given.Read()
	Expect(err).NotTo(HaveOccurred())
	s := steps.Start(ctx, framework.Config{Scenario: "none-sno", Hosts: hosts, Operators: operators})
	running, cancel := s.UntilOperatorEnds(ctx)
	defer cancel()
	Eventually(running, s.IdleOperators).Should(BeEmpty(), func() string { return fmt.Sprint(context.Cause(running)) })

	kubeconfig, err := s.Cluster.KubeconfigForAdministrator("somebody")
	Expect(err).NotTo(HaveOccurred())
	// A changed command must end by itself.
	fails := func(name, want string, without string) {
		GinkgoHelper()
		words := arguments[name]
		command, err := shlex.Split(strings.NewReplacer("{kubeconfig}", kubeconfig, "{release}", scenario.Release).Replace(words[len(words)-1]))
		Expect(err).NotTo(HaveOccurred())
		command[0] = strings.TrimPrefix(command[0], name+"=")
		for i := 0; without != "" && i < len(command); i++ {
			if command[i] == without { // a flag and its value
				command = slices.Delete(command, i, i+2)
				i--
			} else if strings.HasPrefix(command[i], without) {
				command = slices.Delete(command, i, i+1)
				i--
			}
		}
		limited, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		program := exec.CommandContext(limited, command[0], command[1:]...)
		program.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
		out, err := program.CombinedOutput()
		Expect(errors.Join(err, limited.Err())).To(And(HaveOccurred(), Not(MatchError(context.DeadlineExceeded))), "%s without %q: %s", name, without, out)
		Expect(string(out)).To(ContainSubstring(want), "%s without %q", name, without)
	}
	fails("ingress", "--image is not set", "--image")
	fails("ingress", "watch the shutdown file", "--shutdown-file")
	fails("console", "no IMAGE", "IMAGE=")
	fails("auth", "no OPERATOR_IMAGE_VERSION", "OPERATOR_IMAGE_VERSION=")
	fails("etcd", "--namespace is not set", "--namespace")
	fails("machineconfig", "--templates is not set", "--templates")
	fails("approver", "--workload-cluster-kubeconfig is not set", "--workload-cluster-kubeconfig")

	remove := func(kind schema.GroupVersionKind, namespace, name, path string, write func(context.Context, client.Object, client.Patch) error) {
		GinkgoHelper()
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(kind)
		live.SetNamespace(namespace)
		live.SetName(name)
		Expect(write(ctx, live, client.RawPatch(types.JSONPatchType, []byte(`[{"op": "remove", "path": "`+path+`"}]`)))).To(Succeed(), "the status was written")
	}
	object := func(ctx context.Context, object client.Object, patch client.Patch) error {
		return s.Kube.Patch(ctx, object, patch)
	}
	status := func(ctx context.Context, object client.Object, patch client.Patch) error {
		return s.Kube.Status().Patch(ctx, object, patch)
	}
	route := schema.GroupVersionKind{Group: "route.openshift.io", Version: "v1", Kind: "Route"}
	remove(configv1.GroupVersion.WithKind("Network"), "", "cluster", "/status/serviceNetwork", object)
	remove(route, "openshift-console", "downloads", "/status/ingress", status)
	remove(route, "openshift-authentication", "oauth-openshift", "/status/ingress", status)
	fails("etcd", "has no status.serviceNetwork", "")
	fails("console", "downloads has no status.ingress", "")
	fails("auth", "oauth-openshift has no status.ingress", "")
	remove(configv1.GroupVersion.WithKind("FeatureGate"), "", "cluster", "/status/featureGates", status)
	for _, name := range slices.Sorted(maps.Keys(pageOperators)) {
		if name != "approver" {
			fails(name, `missing desired version "`+scenario.Release+`"`, "")
		}
	}
})
