// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/testcluster/apiserver"
)

// Program is the running program of a Suite, with the permissions of config/rbac.
type Program struct {
	*Cluster
	*apiserver.Process
}

// Start starts the program, by default without leader election.
func (c *Cluster) Start(args ...string) *Program {
	c.Helper()
	return c.StartAs(c.Suite.Program(), "", args...)
}

// StartAs is Start with another service account, and with another address of the API server unless it is empty.
func (c *Cluster) StartAs(account, address string, args ...string) *Program {
	c.Helper()
	return &Program{c, apiserver.StartProgram(c, append([]string{
		"--kubeconfig=" + c.Server.AccountKubeconfig(c, SystemNamespace, account, address),
		"--leader-elect=false", "--leader-elect-resource-namespace=" + SystemNamespace,
	}, args...)...)}
}

// Touch changes an annotation of the Infrastructure n times, and waits each time for the reconciliation.
func (p *Program) Touch(n int) {
	p.Helper()
	p.ReconcilesAfter(n, p.Suite.Module().Name(), func(beat int) {
		p.Patch("oc", controller.Infrastructure, `{"metadata":{"annotations":{"test.example.com/beat":"%d"}}}`, beat)
	})
}

// CheckNoWrites fails the test for each write request while the Infrastructure is touched n times.
func (p *Program) CheckNoWrites(n int) {
	p.Helper()
	p.Touch(1)
	p.Server.NoWrites(p, p.Suite.User(), func() { p.Touch(n) })
}

// Invocation is one run of the program that ends by itself, and parts of its output.
type Invocation struct {
	Args   []string
	Code   int
	Output []string
}

// TestFlags runs the program with flags. The section "Flags" of README.md must have the flags of --help.
func (s *Suite) TestFlags(t *testing.T, own map[string]Invocation) {
	all := map[string]Invocation{
		"help": {[]string{"--help"}, 0, []string{"-dry-run", "-force-conflicts", "-leader-elect", "-status-target", "-kubeconfig",
			"-metrics-bind-address", "-health-probe-bind-address"}},
		"unknown status target": {[]string{"--status-target=clusteroperator"}, 2, []string{"--status-target=clusteroperator", "operator", "none"}},
		"unknown flag":          {[]string{"--master"}, 2, []string{"-master"}},
		"an argument":           {[]string{"now"}, 2, []string{`"now"`}},
		"no such kubeconfig":    {[]string{"--kubeconfig=does-not-exist"}, 1, []string{"finding the cluster (give --kubeconfig or set KUBECONFIG)"}},
	}
	maps.Copy(all, own)
	t.Run("README", func(t *testing.T) {
		var help bytes.Buffer
		apiserver.NoError(t, apiserver.Command(&help, "--help").Run())
		readmeFlags(t, folder+"/README.md", help.String())
	})
	for name, run := range all {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := apiserver.Command(&out, run.Args...).Run()
			code := 0
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				code = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if code != run.Code {
				t.Errorf("exit code %d, want %d", code, run.Code)
			}
			for _, text := range run.Output {
				if !strings.Contains(out.String(), text) {
					t.Errorf("the output lacks %q", text)
				}
			}
			if t.Failed() {
				t.Log(out.String())
			}
		})
	}
}

// readmeFlags compares the flags in a help text with the section "Flags" of a README.
func readmeFlags(t *testing.T, path, help string) {
	t.Helper()
	readme, err := os.ReadFile(path)
	apiserver.NoError(t, err)
	_, section, found := strings.Cut(string(readme), "\n## Flags\n")
	if !found {
		t.Fatalf("%s has no section Flags", path)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	names := func(pattern, text string) []string {
		var out []string
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			out = append(out, match[1])
		}
		return slices.Sorted(slices.Values(out))
	}
	if diff := cmp.Diff(names(`(?m)^  -([a-z-]+)`, help), names("`--([a-z-]+)`", section)); diff != "" {
		t.Errorf("flags in %s (-want +got):\n%s", path, diff)
	}
}

// TestManifests checks that config is accepted, and grants the needed rights, see May, and no others.
func (s *Suite) TestManifests(t *testing.T, needed, others [][6]string) {
	c := s.Cluster(t)
	for _, u := range apiserver.Manifests(t, folder+"/config", "manager/namespace.yaml", "manager/deployment.yaml", "manager/metrics_service.yaml",
		"rbac/service_account.yaml", "rbac/role.yaml", "rbac/role_binding.yaml", "rbac/metrics_reader_role.yaml") {
		u.SetName(u.GetName() + "-dry-run")
		if err := c.Admin.Create(t.Context(), u, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
			t.Errorf("%s %s: %v", u.GetKind(), u.GetName(), err)
		}
	}
	if len(needed) == 0 {
		t.Error("no right is required, so nothing is tested")
	}
	for _, right := range needed {
		c.Eventually("the permissions are effective", func() error {
			if !c.May(s.Program(), right) {
				return errors.New("required, but not permitted: " + strings.Join(right[:], " "))
			}
			return nil
		})
	}
	for _, right := range append(others, [6]string{SystemNamespace, "coordination.k8s.io", "leases", "", "other", "update"},
		[6]string{SystemNamespace, "", "secrets", "", "", "get"}, [6]string{"", "config.openshift.io", "infrastructures", "", "cluster", "patch"},
		[6]string{"", "config.openshift.io", "infrastructures", "status", "cluster", "patch"}) {
		if c.May(s.Program(), right) {
			t.Errorf("permitted, but not required: %v", right)
		}
	}
}
