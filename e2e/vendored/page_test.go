// SPDX-License-Identifier: Apache-2.0

package vendored

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/shlex"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/steps"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/testcluster/scenario"
)

// needs is what an operator of OpenShift checks at its start, and without which it ends.
type needs struct {
	module framework.Module
	// verb is the first argument. The flags of required have a value, and the operator knows no others than these and known.
	verb            string
	required, known string
	// env are variables. version is the flag or the variable with the release, and namespace a flag.
	env                []string
	version, namespace string
	// gates panic in library-go if the FeatureGate does not list them.
	gates   []string
	objects []need
}

// need is an object with a value at the path.
type need struct{ apiVersion, kind, namespace, name, path string }

func config(kind, path string) need { return need{"config.openshift.io/v1", kind, "", "cluster", path} }

func admitted(namespace, name string) need {
	return need{"route.openshift.io/v1", "Route", namespace, name, "status.ingress"}
}

// library returns the needs of an operator of library-go.
func library(module framework.Module, env, gates []string, objects ...need) needs {
	return needs{module, "operator", "namespace kubeconfig listen", "config terminate-on-files v", env, "OPERATOR_IMAGE_VERSION", "namespace", gates, objects}
}

// pageOperators are the operators of docs/ci.md.
var pageOperators = map[string]needs{
	"ingress": {
		framework.Ingress, "start", "namespace image release-version metrics-listen-addr", "canary-image shutdown-file", []string{"KUBECONFIG"}, "release-version", "namespace",
		[]string{"AzureWorkloadIdentity", "GatewayAPIWithoutOLM", "IngressControllerDynamicConfigurationManager"},
		[]need{config("DNS", "spec.baseDomain"), config("Infrastructure", "status"), config("Ingress", "spec.domain")},
	},
	"console": library(framework.Console, []string{"IMAGE", "OPERATOR_IMAGE_VERSION"}, []string{"ExternalOIDC"},
		admitted("openshift-console", "console"), admitted("openshift-console", "downloads"), config("OAuth", "metadata")),
	"auth": library(framework.Auth, []string{"IMAGE_OAUTH_SERVER", "IMAGE_OAUTH_APISERVER", "OPERATOR_IMAGE_VERSION", "OPERAND_OAUTH_SERVER_IMAGE_VERSION"},
		[]string{"ExternalOIDC"}, admitted("openshift-authentication", "oauth-openshift"), config("Authentication", "metadata"), config("APIServer", "metadata")),
	"etcd": library(framework.EtcdGuard, []string{"IMAGE", "OPERATOR_IMAGE", "OPERATOR_IMAGE_VERSION", "OPERAND_IMAGE_VERSION"}, nil,
		config("Network", "status.serviceNetwork"), need{"v1", "ConfigMap", "kube-system", "cluster-config-v1", "data.install-config"}),
	"machineconfig": {
		framework.MachineConfig, "start", "kubeconfig resourcelock-namespace templates metrics-listen-address payload-version", "v", nil, "payload-version", "resourcelock-namespace", nil,
		[]need{
			{"machineconfiguration.openshift.io/v1", "ControllerConfig", "", "machine-config-controller", "status.conditions"},
			{"machineconfiguration.openshift.io/v1", "MachineConfigPool", "", "master", "metadata"}, config("APIServer", "metadata"),
		},
	},
	"approver": {
		framework.Approver, "", "management-cluster-kubeconfig workload-cluster-kubeconfig leader-elect-resource-namespace",
		"config v logtostderr leader-elect api-group-version", []string{"METRICS_PORT"}, "RELEASE_VERSION", "leader-elect-resource-namespace", nil, nil,
	},
}

// missing returns what is wrong with the arguments and variables of an operator. Two operators may have the same default
// of where they listen, so the page sets it.
func (n needs) missing(args []string, env map[string]string) (all []string) {
	if n.verb != "" {
		if len(args) == 0 || args[0] != n.verb {
			return []string{"the command " + n.verb}
		}
		args = args[1:]
	}
	given := map[string]string{}
	for i := 0; i < len(args); i++ {
		name, value, _ := strings.Cut(strings.TrimPrefix(args[i], "--"), "=")
		if i+1 < len(args) && !strings.Contains(args[i], "=") && !strings.HasPrefix(args[i+1], "--") {
			i++
			value = args[i]
		}
		given[name] = value
		if !slices.Contains(strings.Fields(n.required+" "+n.known), name) {
			all = append(all, "no such flag as --"+name)
		}
		if strings.Contains(name, "listen") && value != "127.0.0.1:0" || name == "shutdown-file" && value != "" {
			all = append(all, "another value of --"+name)
		}
	}
	for _, name := range strings.Fields(n.required) {
		if given[name] == "" {
			all = append(all, "--"+name)
		}
	}
	if _, set := given["shutdown-file"]; !set && strings.Contains(n.known, "shutdown-file") {
		all = append(all, "--shutdown-file=, whose default does not exist")
	}
	for _, name := range n.env {
		if env[name] == "" {
			all = append(all, name)
		}
	}
	if given[n.version]+env[n.version] != scenario.Release {
		all = append(all, "the version in "+n.version)
	}
	return all
}

var (
	shellBlocks = regexp.MustCompile("(?s)<!-- guide: run by proof -->\n```sh\n(.*?)```")
	binaryWord  = regexp.MustCompile(`\./[a-z-]+`)
)

// pageArguments runs the commands of docs/ci.md that set the variables, and returns the words of each, with another
// program instead of the operator's binary.
func pageArguments(ctx context.Context, program string) map[string][]string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	script := "set -e\n"
	for _, block := range shellBlocks.FindAllStringSubmatch(string(suite.Must(os.ReadFile(filepath.Join("docs", "ci.md")))), -1) {
		if strings.Contains(block[1], "$all") || strings.Contains(block[1], "all=") {
			script += block[1]
		}
	}
	for name := range pageOperators {
		script += `printf %s "$` + name + `" >` + filepath.Join(dir, name) + "\n"
	}
	command := exec.CommandContext(ctx, "sh", "-c", script)
	command.Env = append(os.Environ(), "TMPDIR="+dir)
	out, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s\n%s", out, script)
	arguments := map[string][]string{}
	for name := range pageOperators {
		words := suite.Must(shlex.Split(string(suite.Must(os.ReadFile(filepath.Join(dir, name))))))
		Expect(words).NotTo(BeEmpty(), name)
		last := len(words) - 1
		words[last] = binaryWord.ReplaceAllLiteralString(words[last], program+" "+name)
		arguments[name] = words
	}
	return arguments
}

// The flags, variables and objects are those that the operators read and check, by their sources.
var _ = It("With the words of docs/ci.md every operator has at its start what it needs", Label(suite.Long), func(ctx SpecContext) {
	dir := GinkgoT().TempDir()
	program := write(0o700, filepath.Join(dir, "operator"), `#!/bin/sh
name=$1; shift
env >'`+dir+`'/"$name.env"
for word; do printf '%s\n' "$word"; done >'`+dir+`'/"$name.new"
mv '`+dir+`'/"$name.new" '`+dir+`'/"$name.words"
trap 'exit 0' TERM
while :; do sleep 1000 & wait $!; done
`)
	var given framework.OperatorFlags
	flags, hosts, seen := flag.NewFlagSet("", flag.ContinueOnError), map[framework.Module][]string{}, map[string]bool{} // a folder must be given once
	given.Bind(flags)
	for name, words := range pageArguments(ctx, program) {
		hosts[pageOperators[name].module] = nil
		for pair := range slices.Chunk(words, 2) {
			if text := strings.Join(pair, ""); !seen[text] {
				seen[text] = true
				Expect(flags.Parse(pair)).To(Succeed())
			}
		}
	}
	s := steps.Start(ctx, framework.Config{Scenario: "none-sno", Hosts: hosts, Operators: suite.Must(given.Read())})
	read := func(n need) *unstructured.Unstructured {
		GinkgoHelper()
		live := &unstructured.Unstructured{}
		live.SetAPIVersion(n.apiVersion)
		live.SetKind(n.kind)
		Expect(s.Kube.Get(ctx, client.ObjectKey{Namespace: n.namespace, Name: n.name}, live)).To(Succeed(), "%+v", n)
		return live
	}
	gates := gatesOf(read(config("FeatureGate", "")))
	for name, operator := range pageOperators {
		By(name)
		Eventually(ctx, func() error { _, err := os.Stat(filepath.Join(dir, name+".words")); return err }).Should(Succeed(), "it has started")
		words := strings.Split(strings.TrimSuffix(string(suite.Must(os.ReadFile(filepath.Join(dir, name+".words")))), "\n"), "\n")
		env := map[string]string{}
		for line := range strings.Lines(string(suite.Must(os.ReadFile(filepath.Join(dir, name+".env"))))) {
			variable, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			env[variable] = value
		}
		Expect(operator.missing(words, env)).To(BeEmpty(), "%q", words)
		for i := range words { // each of the words is needed, or known to be optional
			without := operator.missing(slices.Delete(slices.Clone(words), i, i+1), env)
			required := slices.Contains(strings.Fields(operator.required), strings.TrimPrefix(words[i], "--"))
			Expect(len(without) > 0 || !required).To(BeTrue(), "%q without %s", words, words[i])
		}
		for _, gate := range operator.gates {
			Expect(gates).To(ContainElement(gate))
		}
		for _, n := range operator.objects {
			_, has, err := unstructured.NestedFieldNoCopy(read(n).Object, strings.Split(n.path, ".")...)
			Expect(has, err).To(BeTrue(), "%+v", n)
		}
		i := slices.Index(words, "--"+operator.namespace)
		Expect(s.Kube.Get(ctx, client.ObjectKey{Name: words[i+1]}, &corev1.Namespace{})).To(Succeed(), fmt.Sprint("the namespace of the Lease: ", words[i+1]))
	}
})

// gatesOf returns the names that the FeatureGate lists for the release.
func gatesOf(live *unstructured.Unstructured) (names []string) {
	all, _, _ := unstructured.NestedSlice(live.Object, "status", "featureGates")
	for _, each := range all {
		of, _ := each.(map[string]any)
		for _, list := range []string{"enabled", "disabled"} {
			gates, _, _ := unstructured.NestedSlice(of, list)
			for _, gate := range gates {
				if gate, ok := gate.(map[string]any); ok && of["version"] == scenario.Release {
					names = append(names, fmt.Sprint(gate["name"]))
				}
			}
		}
	}
	return names
}
