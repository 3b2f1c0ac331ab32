package cli_test

import (
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/solonode/sno/cli"
	"github.com/solonode/sno/patch/patchtest"
)

// verbs are all commands that do something.
func verbs(command *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, below := range command.Commands() {
		if below.Runnable() {
			all = append(all, below)
		}
		all = append(all, verbs(below)...)
	}
	return all
}

// Every verb says what it is for and shows how it is used, with flags that it has.
func TestHelp(t *testing.T) {
	root := cli.New(genericiooptions.NewTestIOStreamsDiscard())
	found := verbs(root)
	if len(found) < 9 {
		t.Fatalf("%d verbs", len(found))
	}
	for _, verb := range found {
		if verb.Long == "" || verb.Short == "" || !strings.Contains(verb.Example, "kubectl") {
			t.Errorf("%s lacks a description or an example", verb.CommandPath())
		}
		for line := range strings.Lines(verb.Example) {
			line, _, _ = strings.Cut(line, "|") // what comes then is of another program
			for word := range strings.FieldsSeq(line) {
				name, long := strings.CutPrefix(word, "--")
				name, _, _ = strings.Cut(name, "=")
				if long && verb.Flags().Lookup(name) == nil && verb.InheritedFlags().Lookup(name) == nil {
					t.Errorf("an example of %s has the flag --%s, which it has not", verb.CommandPath(), name)
				}
			}
		}
		if is := run(t, append(strings.Fields(verb.CommandPath())[2:], "--help")...); is.code != 0 || !strings.Contains(is.out, "Examples:") || is.err != "" {
			t.Errorf("%s --help: %d\n%s", verb.CommandPath(), is.code, is.err)
		}
	}
}

func TestCompletion(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"modules":       {[]string{"plan", "--modules", ""}, []string{"ingress", "approver"}},
		"more modules":  {[]string{"plan", "--modules", "ingress,"}, []string{"ingress,auth"}},
		"release":       {[]string{"release", ""}, []string{"machineconfig"}},
		"output":        {[]string{"status", "-o", ""}, []string{"jsonpath", "wide"}},
		"dry run":       {[]string{"apply", "--dry-run", ""}, []string{"none", "server", "client"}},
		"policy":        {[]string{"topology", "decide", "--policy", ""}, []string{"enhancement", "worker-count"}},
		"verbs":         {[]string{"pl"}, []string{"plan"}},
		"below a verb":  {[]string{"topology", ""}, []string{"decide"}},
		"platform":      {[]string{"topology", "decide", "--platform", ""}, []string{"None", "AWS"}},
		"another shell": {[]string{"topology", "decide", "--platform", "A"}, []string{"AWS"}},
	} {
		is := run(t, append([]string{"__complete"}, test.args...)...)
		lines := strings.Split(is.out, "\n")
		for _, want := range test.want {
			found := false
			for _, line := range lines {
				value, _, _ := strings.Cut(line, "\t")
				found = found || value == want
			}
			if !found {
				t.Errorf("%s: %q is not offered:\n%s", name, want, is.out)
			}
		}
	}
}

// What makes no sense ends with an error that says what does, before any cluster is asked.
func TestBadFlags(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		err  string
	}{
		"unknown module":            {[]string{"plan", "--modules", "ingress,dns"}, `unknown module "dns"; there are: ingress, etcdguard`},
		"unknown module to release": {[]string{"release", "dns"}, `unknown module "dns"`},
		"nothing to release":        {[]string{"release"}, "requires at least 1 arg"},
		"unknown output":            {[]string{"status", "-o", "xml"}, `unknown output format "xml"; want wide, json`},
		"unknown dry run":           {[]string{"apply", "--dry-run=perhaps"}, `unknown --dry-run=perhaps; want "none"`},
		"value of a module":         {[]string{"plan", "--placement=moon"}, "--placement"},
		"of another module":         {[]string{"apply", "--mode=maybe"}, "--mode=maybe"},
		"unknown flag":              {[]string{"plan", "--moduls=x"}, "unknown flag: --moduls"},
		"unknown verb":              {[]string{"paln"}, `unknown command "paln"`},
		"argument":                  {[]string{"plan", "ingress"}, `unknown command "ingress"`},
		"table and more":            {[]string{"topology", "decide", "--table", "--workers=1"}, "[table workers]"},
		"unknown policy":            {[]string{"topology", "decide", "--policy=best"}, `unknown policy "best"`},
		"unknown platform":          {[]string{"topology", "decide", "--platform=Moon"}, `unknown platform "Moon"; there are: None`},
		"no control plane":          {[]string{"topology", "decide", "--control-plane-replicas=0"}, "no control-plane replicas"},
		"negative":                  {[]string{"topology", "decide", "--workers=-1"}, "negative replicas"},
		"jsonpath":                  {[]string{"topology", "decide", "-o", "jsonpath={.x"}, "unclosed action"},
		"no such kubeconfig":        {[]string{"plan", "--kubeconfig=/does/not/exist"}, "/does/not/exist"},
		"no such context":           {[]string{"plan", "--context=moon"}, `context "moon" does not exist`},
		"unknown flag of diff":      {[]string{"diff", "-o", "name"}, "unknown shorthand flag: 'o'"},
		"argument of diff":          {[]string{"diff", "ingress"}, `unknown command "ingress"`},
		"unknown module to diff":    {[]string{"diff", "--modules", "dns"}, `unknown module "dns"`},
		"status target":             {[]string{"run", "--status-target=both"}, "operator or none"},
	} {
		t.Run(name, func(t *testing.T) {
			is := run(t, test.args...)
			want := 1
			if test.args[0] == "diff" {
				want = 2 // 1 is for differences
			}
			if is.code != want || is.out != "" || !strings.HasPrefix(is.err, "error: ") || !strings.Contains(is.err, test.err) {
				t.Errorf("%d, want %d and %q; got\n%s%s", is.code, want, test.err, is.out, is.err)
			}
		})
	}
}

func TestDecide(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"enhancement": {[]string{"--platform", "none", "--control-plane-replicas", "1", "--workers", "2",
			"-o", "jsonpath={.infrastructureTopology} {.ingress.replicas} {.ingress.pool} {.loadBalancer.needed}"}, "SingleReplica 1 master false"},
		"shipped first": {[]string{"--platform", "None", "--control-plane-replicas", "1", "--workers", "2", "--policy", "worker-count",
			"-o", "jsonpath={.infrastructureTopology} {.ingress.replicas} {.ingress.pool} {.loadBalancer.needed}"}, "HighlyAvailable 2 worker true"},
		"as install-config has it": {[]string{"-o", "jsonpath={.controlPlaneTopology} {.mastersSchedulable}"}, "HighlyAvailable false"},
		"table": {[]string{"--table", "-o", "jsonpath={.rows[*].decisions[0].infrastructureTopology}"},
			"SingleReplica SingleReplica SingleReplica HighlyAvailable SingleReplica HighlyAvailable SingleReplica SingleReplica"},
	} {
		if is := run(t, append([]string{"topology", "decide"}, test.args...)...); is.out != test.want || is.code != 0 || is.err != "" {
			t.Errorf("%s: %q, want %q; %d %s", name, is.out, test.want, is.code, is.err)
		}
	}
	former := run(t, "topology", "decide", "--platform", "None", "--control-plane-replicas", "1", "--workers", "2", "--policy", "seed", "-o", "jsonpath={.policy} {.infrastructureTopology}")
	if former.out != "enhancement SingleReplica" || former.code != 0 || !strings.Contains(former.err, "warning: --policy=") || !strings.Contains(former.err, "enhancement") {
		t.Errorf("the policy's former name: %q, %q, %d", former.out, former.err, former.code)
	}
	if is := run(t, "topology", "decide", "--table", "--no-headers"); strings.Count(is.out, "\n") != 8 {
		t.Errorf("the table is\n%s", is.out)
	}
}

// The program itself, in a terminal and not: only there it paints, and says what it is doing.
func TestTerminal(t *testing.T) {
	args := []string{"diff", "--must-gather", gathered}
	command := patchtest.Command(io.Discard, args...)
	command.Stdin, command.Stdout, command.Stderr = nil, nil, nil
	command.Env = append(command.Env, "TERM=xterm", "NO_COLOR=")
	terminal, err := pty.Start(command)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()          //nolint:errcheck // it was only read
	said, _ := io.ReadAll(terminal) // ends with an error when the program has ended
	ended := command.Wait()
	for _, want := range []string{"\x1b[32m+  replicas: 1\x1b[0m", "\x1b[31m-  replicas: 2\x1b[0m", "Looking at ingress (1/6)"} {
		if !strings.Contains(string(said), want) {
			t.Errorf("in a terminal it does not say %q:\n%q", want, said)
		}
	}
	if exit, is := ended.(*exec.ExitError); !is || exit.ExitCode() != 1 { //nolint:errorlint // Wait returns it unwrapped
		t.Errorf("it ends with %v", ended)
	}
	var out strings.Builder
	plain := patchtest.Command(&out, args...)
	if err := plain.Run(); err == nil || plain.ProcessState.ExitCode() != 1 {
		t.Errorf("it ends with %v", err)
	}
	if strings.Contains(out.String(), "\x1b") || strings.Contains(out.String(), "Looking") {
		t.Errorf("without a terminal it says\n%q", out.String())
	}
}
