// SPDX-License-Identifier: Apache-2.0

package framework_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/shlex"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/scenario"
)

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
func pageArguments(t *testing.T) map[string][]string {
	t.Helper()
	root, err := programs.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "ci.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	strict := filepath.Join(dir, "strict-operator")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", strict, "./testdata/strict-operator").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	write(t, 0o600, filepath.Join(dir, "machine-config-operator", "templates", "master"), "")
	script := "set -e\n"
	for _, block := range shellBlocks.FindAllStringSubmatch(string(page), -1) {
		if strings.Contains(block[1], "$all") || strings.Contains(block[1], "all=") {
			script += block[1]
		}
	}
	for name := range pageOperators {
		script += `printf %s "$` + name + `" >` + filepath.Join(dir, name) + "\n"
	}
	command := exec.CommandContext(t.Context(), "sh", "-c", script)
	command.Dir, command.Env = root, append(os.Environ(), "TMPDIR="+dir)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, script)
	}
	arguments := map[string][]string{}
	for name := range pageOperators {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		words, err := shlex.Split(strings.NewReplacer("e2e/objects", filepath.Join(root, "e2e", "objects"), "machine-config-operator/templates",
			filepath.Join(dir, "machine-config-operator", "templates")).Replace(string(text)))
		if err != nil || len(words) == 0 {
			t.Fatalf("%s: %q, %v", name, text, err)
		}
		last := len(words) - 1
		words[last] = binaryWord.ReplaceAllLiteralString(words[last], strict+" "+name)
		arguments[name] = words
	}
	return arguments
}

// With the words of docs/ci.md operators start that check their flags, variables, objects and status as the real ones
// do, and without a part of these they do not.
func TestPage(t *testing.T) {
	if testing.Short() {
		t.Skip("it installs all kinds of openshift/api; make proof runs it")
	}
	ctx := t.Context()
	arguments := pageArguments(t)
	var given framework.OperatorFlags
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	given.Bind(flags)
	hosts := map[framework.Module][]string{}
	seen := map[string]bool{} // a folder must be given once
	for name, module := range pageOperators {
		hosts[module] = nil
		words := arguments[name]
		for i := 0; i < len(words); i += 2 {
			if pair := words[i] + words[i+1]; !seen[pair] {
				seen[pair] = true
				if err := flags.Parse(words[i : i+2]); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	operators, err := given.Read()
	if err != nil {
		t.Fatal(err)
	}
	var progress lines
	s, err := framework.Start(ctx, framework.Config{Scenario: "none-sno", Hosts: hosts, Operators: operators, Progress: &progress})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	running, cancel := s.UntilOperatorEnds(ctx)
	defer cancel()
	err = wait.PollUntilContextTimeout(running, 50*time.Millisecond, waitTimeout, true, func(ctx context.Context) (bool, error) {
		idle, err := s.IdleOperators(ctx)
		return len(idle) == 0, err
	})
	if err != nil {
		t.Fatalf("they have not all started: %v\n%s", errors.Join(err, context.Cause(running)), &progress)
	}

	kubeconfig, err := s.Cluster.KubeconfigForAdministrator("somebody")
	if err != nil {
		t.Fatal(err)
	}
	// A changed command must end by itself.
	fails := func(name, what string, change func(words []string) []string, want string) {
		t.Helper()
		words := arguments[name]
		command, err := shlex.Split(strings.NewReplacer("{kubeconfig}", kubeconfig, "{release}", scenario.Release).Replace(words[len(words)-1]))
		if err != nil {
			t.Fatal(err)
		}
		command[0] = strings.TrimPrefix(command[0], name+"=")
		command = change(command)
		limited, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		program := exec.CommandContext(limited, command[0], command[1:]...)
		program.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
		if out, err := program.CombinedOutput(); err == nil || limited.Err() != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s starts %s: %v %s, want %q", name, what, err, out, want)
		}
	}
	same := func(words []string) []string { return words }
	without := func(part string) func([]string) []string {
		return func(words []string) []string {
			var left []string
			for i := 0; i < len(words); i++ {
				switch {
				case words[i] == part: // a flag and its value
					i++
				case !strings.HasPrefix(words[i], part):
					left = append(left, words[i])
				}
			}
			return left
		}
	}
	fails("ingress", "without --image", without("--image"), "--image is not set")
	fails("ingress", "with its shutdown file", without("--shutdown-file"), "watch the shutdown file")
	fails("console", "without its image", without("IMAGE="), "no IMAGE")
	fails("auth", "without its version", without("OPERATOR_IMAGE_VERSION="), "no OPERATOR_IMAGE_VERSION")
	fails("etcd", "without its namespace", without("--namespace"), "--namespace is not set")
	fails("machineconfig", "without templates", without("--templates"), "--templates is not set")
	fails("approver", "without a kubeconfig", without("--workload-cluster-kubeconfig"), "--workload-cluster-kubeconfig is not set")

	kube := s.Cluster.Client()
	remove := func(kind schema.GroupVersionKind, key client.ObjectKey, subresource bool, path string) {
		t.Helper()
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(kind)
		live.SetNamespace(key.Namespace)
		live.SetName(key.Name)
		patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op": "remove", "path": "`+path+`"}]`))
		err := kube.Patch(ctx, live, patch)
		if subresource {
			err = kube.Status().Patch(ctx, live, patch)
		}
		if err != nil {
			t.Fatalf("the status was not written: %v", err)
		}
	}
	cluster := client.ObjectKey{Name: "cluster"}
	route := schema.GroupVersionKind{Group: "route.openshift.io", Version: "v1", Kind: "Route"}
	remove(configv1.GroupVersion.WithKind("Network"), cluster, false, "/status/serviceNetwork")
	remove(route, client.ObjectKey{Namespace: "openshift-console", Name: "downloads"}, true, "/status/ingress")
	remove(route, client.ObjectKey{Namespace: "openshift-authentication", Name: "oauth-openshift"}, true, "/status/ingress")
	fails("etcd", "without a network", same, "has no status.serviceNetwork")
	fails("console", "with a Route that is not admitted", same, "downloads has no status.ingress")
	fails("auth", "with a Route that is not admitted", same, "oauth-openshift has no status.ingress")
	remove(configv1.GroupVersion.WithKind("FeatureGate"), cluster, true, "/status/featureGates")
	for name := range pageOperators {
		if name != "approver" {
			fails(name, "without features", same, `missing desired version "`+scenario.Release+`"`)
		}
	}
}
