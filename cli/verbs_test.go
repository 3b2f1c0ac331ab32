// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/cli"
)

func runnable(command *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, below := range command.Commands() {
		if below.Hidden {
			continue
		}
		if below.Runnable() {
			all = append(all, below)
		}
		all = append(all, runnable(below)...)
	}
	return all
}

// Every command has a description and valid examples.
func TestHelp(t *testing.T) {
	root := cli.New(genericiooptions.NewTestIOStreamsDiscard())
	found := runnable(root)
	if len(found) < 9 {
		t.Fatalf("%d commands", len(found))
	}
	for _, command := range found {
		if command.Long == "" || command.Short == "" || !strings.Contains(command.Example, "kubectl") {
			t.Errorf("%s lacks a description or an example", command.CommandPath())
		}
		for line := range strings.Lines(command.Example) {
			line, _, _ = strings.Cut(line, "|") // another program follows
			for _, name := range regexp.MustCompile(`--[a-z-]+`).FindAllString(line, -1) {
				if command.Flags().Lookup(name[2:]) == nil && command.InheritedFlags().Lookup(name[2:]) == nil {
					t.Errorf("an example of %s has the unknown flag %s", command.CommandPath(), name)
				}
			}
		}
		call{strings.TrimPrefix(command.CommandPath(), "kubectl sno ") + " --help", 0, "Examples:", ""}.test(t)
	}
}

func TestCompletion(t *testing.T) {
	for args, want := range map[string]string{
		"plan --modules ":              "ingress approver",
		"plan --modules ingress,":      "ingress,auth",
		"release ":                     "machineconfig",
		"status -o ":                   "jsonpath wide",
		"apply --dry-run ":             "none server client",
		"topology decide --policy ":    "enhancement worker-count",
		"pl":                           "plan",
		"topology ":                    "decide",
		"fleet ":                       "status plan opt-out undo check",
		"fleet plan --modules ":        "ingress approver",
		"topology decide --platform ":  "None AWS",
		"topology decide --platform A": "AWS",
	} {
		got := run(t, append([]string{"__complete"}, strings.Split(args, " ")...)...)
		for value := range strings.FieldsSeq(want) {
			if !regexp.MustCompile(`(?m)^` + value + `(\t|$)`).MatchString(got.out) {
				t.Errorf("%s: %q is not offered:\n%s", args, value, got.out)
			}
		}
	}
	call{"completion bash", 0, "bash completion|__complete", ""}.test(t)
}

// Invalid flags are reported with the valid ones, before a cluster is read.
func TestBadFlags(t *testing.T) {
	const decide = "topology decide "
	for args, want := range map[string]string{
		"plan --modules ingress,dns":                `unknown module "dns"; use one of: ingress, etcdguard`,
		"release dns":                               `unknown module "dns"`,
		"release":                                   "requires at least 1 arg",
		"status -o xml":                             `unknown output format "xml"; use wide, json`,
		"apply --dry-run=perhaps":                   `unknown --dry-run=perhaps; use "none"`,
		"plan --placement=moon":                     "--placement",
		"apply --mode=maybe":                        "--mode=maybe",
		"plan --moduls=x":                           "unknown flag: --moduls",
		"paln":                                      `unknown command "paln"`,
		"plan ingress":                              `unknown command "ingress"`,
		decide + "--table --workers=1":              "[table workers]",
		decide + "--policy=best":                    `unknown policy "best"`,
		decide + "--platform=Moon":                  `unknown platform "Moon"; use one of: None`,
		decide + "--control-plane-replicas=0":       "no control-plane replicas",
		decide + "--workers=-1":                     "negative replicas",
		decide + "-o jsonpath={.x":                  "unclosed action",
		"plan --kubeconfig=/does/not/exist":         "/does/not/exist",
		"plan --context=moon":                       `context "moon" does not exist`,
		"fleet status -l a=,=":                      "unknown value of --selector",
		"fleet plan --modules=dns":                  `unknown module "dns"`,
		"fleet plan --placement=a/b":                "[placement configuration]",
		"fleet opt-out":                             "name clusters, or select some with --selector",
		"fleet undo":                                "name clusters, or select some with --selector",
		"diff -o name":                              "unknown shorthand flag: 'o'",
		"diff ingress":                              `unknown command "ingress"`,
		"diff --modules dns":                        `unknown module "dns"`,
		"wait-for-stable --for=2h --timeout=1h":     "a period of 2h0m0s does not fit into a timeout of 1h0m0s",
		"wait-for-stable --timeout=0":               "both must be positive",
		"wait-for-stable -o table":                  `unknown output format "table"`,
		"run --status-target=both":                  "operator or none",
		"render --modules=ingress,auth --image=r/x": "use {module} in --image=r/x",
		"render --image=r/{module}":                 "set --modules",
		"render --modules=dns":                      `unknown module "dns"`,
	} {
		code := 1
		if strings.HasPrefix(args, "diff") {
			code = 2 // 1 is for differences
		}
		t.Run(args, func(t *testing.T) { call{args, code, "", "error: |" + want}.test(t) })
	}
}

func TestDecide(t *testing.T) {
	const of = "topology decide --platform none --control-plane-replicas 1 --workers 2 "
	fields := []string{"-o", "jsonpath={.infrastructureTopology} {.ingress.replicas} {.ingress.pool} {.loadBalancer.needed}"}
	call{of, 0, "=SingleReplica 1 master false", ""}.test(t, fields...)
	call{of + "--policy worker-count", 0, "=HighlyAvailable 2 worker true", ""}.test(t, fields...)
	call{"topology decide -o jsonpath={.controlPlaneTopology}-{.mastersSchedulable}", 0, "=HighlyAvailable-false", ""}.test(t)
	call{"topology decide --table -o jsonpath={.rows[*].decisions[0].infrastructureTopology}", 0,
		"=SingleReplica SingleReplica SingleReplica HighlyAvailable SingleReplica HighlyAvailable SingleReplica SingleReplica", ""}.test(t)
	if got := run(t, "topology", "decide", "--table", "--no-headers"); strings.Count(got.out, "\n") != 8 {
		t.Errorf("the table is\n%s", got.out)
	}
}

// A cluster is not stable while its API server does not answer: it may be restarting.
func TestWaitForStable(t *testing.T) {
	const args = "wait-for-stable --server=https://127.0.0.1:1 --for=0 --timeout=1ms "
	const failure = "error: the cluster is not stable after "
	call{args, 1, "OBJECT|Node|cannot be read: |connection refused", failure}.test(t)
	call{args + "-o json", 1, `"kind": "Stability"|"stable": false|"unknown": [|"error": "`, failure}.test(t)
}

func TestRender(t *testing.T) {
	const two = "render --modules=ingress,auth --image=r/{module}-controller@sha256:x"
	testCalls(t, map[string]call{
		"all":           {"render", 0, "image: ko://github.com/solonode/sno/cli/cmd/kubectl-sno", ""},
		"with an image": {"render --image=r/kubectl-sno:v1", 0, "image: r/kubectl-sno:v1|!ko://", ""},
		"policies":      {"render", 0, "kind: ValidatingAdmissionPolicy\n|kind: ValidatingAdmissionPolicyBinding\n", ""},
		"no policies":   {"render --admission-policies=false", 0, "kind: Deployment|!ValidatingAdmissionPolicy", ""},
		"current":       {"render --current --image=r/kubectl-sno:v1", 0, "image: r/kubectl-sno:v1|!ko://", ""},
		"one module":    {"render --modules=auth --image=r/auth", 0, "image: r/auth|!ko://", ""},
		"two modules":   {two, 0, "image: r/ingress-controller@sha256:x|image: r/auth-controller@sha256:x|!ko://", ""},
	})
	// The modules of the Deployments, and those whose roles are bound to each account.
	const process, ingress, auth = "sno-controllers", "sno-ingress-controller", "sno-auth-controller"
	some := []string{"approver", "ingress", "machineconfig"}
	for args, want := range map[string]struct {
		run    []string
		rights map[string][]string
	}{
		"render":           {allModules, map[string][]string{process: allModules}},
		"render --current": {some, map[string][]string{process: some}},
		two:                {nil, map[string][]string{ingress: {"ingress"}, auth: {"auth"}}},
	} {
		var modules []string
		deployments, rights := 0, map[string][]string{}
		for document := range strings.SplitSeq(run(t, strings.Fields(args)...).out, "\n---\n") {
			var o struct {
				metav1.TypeMeta   `json:",inline"`
				metav1.ObjectMeta `json:"metadata"`
				Spec              appsv1.DeploymentSpec
				RoleRef           rbacv1.RoleRef
				Subjects          []rbacv1.Subject
			}
			if err := yaml.Unmarshal([]byte(document), &o); err != nil || o.Kind == "" || o.Name == "" {
				t.Fatalf("%v in\n%s", err, document)
			}
			if o.Kind == "Deployment" {
				deployments++
				for _, arg := range o.Spec.Template.Spec.Containers[0].Args {
					if module, is := strings.CutPrefix(arg, "--modules="); is {
						modules = append(modules, module)
					}
				}
			}
			module, is := strings.CutSuffix(strings.TrimPrefix(o.RoleRef.Name, "sno-"), "-controller")
			for _, s := range o.Subjects {
				if is && !slices.Contains(rights[s.Name], module) {
					rights[s.Name] = append(rights[s.Name], module)
				}
			}
		}
		for _, of := range rights {
			slices.Sort(of)
		}
		if deployments != len(want.rights) || !slices.Equal(modules, want.run) || !maps.EqualFunc(rights, want.rights, slices.Equal) {
			t.Errorf("%s: %d Deployments, modules %v, rights %v", args, deployments, modules, rights)
		}
	}
}

func TestNoCluster(t *testing.T) {
	mux := http.NewServeMux()
	for path, text := range map[string]string{
		"/api":    `{"kind":"APIVersions","versions":["v1"]}`,
		"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"nodes","kind":"Node","verbs":["get","list"]}]}`,
		"/apis":   `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, text)
		})
	}
	plain := httptest.NewServer(mux)
	defer plain.Close()
	for _, args := range []string{"plan", "topology", "apply", "status"} {
		call{args, 1, "", "Infrastructure|not an OpenShift cluster"}.test(t, "--server", plain.URL)
		call{args, 1, "", "The API server does not answer"}.test(t, "--server", "http://127.0.0.1:1")
	}
}
