// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/solonode/sno/cli"
	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/crds"
)

var shared = apiserver.NewShared(apiserver.Options{CRDs: []string{
	crds.Infrastructures, crds.Ingresses, crds.IngressControllers, crds.ClusterVersions, crds.Consoles,
}})

func TestMain(m *testing.M) {
	apiserver.MaybeRunProgram(func(args []string) int {
		return cli.Main(args, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	})
	os.Exit(shared.Main(m))
}

type output struct {
	out, err string
	code     int
}

// run runs the program in this process, by default without a cluster.
func run(t *testing.T, args ...string) output {
	t.Helper()
	t.Setenv("KUBECONFIG", os.DevNull)
	var out, errOut bytes.Buffer
	code := cli.Main(args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	return output{out.String(), errOut.String(), code}
}

// call is one run with the expected output: see contains.
type call struct {
	args     string
	code     int
	out, err string
}

func (c call) test(t *testing.T, more ...string) {
	t.Helper()
	got := run(t, append(strings.Fields(c.args), more...)...)
	if got.code != c.code {
		t.Errorf("%s: exit code %d, want %d\n%s%s", c.args, got.code, c.code, got.out, got.err)
	}
	contains(t, c.args, got.out, c.out)
	contains(t, c.args, got.err, c.err)
}

// contains checks for parts separated by |, which must be missing after !. A text after = must be equal. An empty one
// means no output.
func contains(t *testing.T, what, text, wanted string) {
	t.Helper()
	if all, exactly := strings.CutPrefix(wanted, "="); exactly || wanted == "" {
		if text != all {
			t.Errorf("%s prints\n%s\nwant\n%s", what, text, all)
		}
		return
	}
	for want := range strings.SplitSeq(wanted, "|") {
		part, not := strings.CutPrefix(want, "!")
		if strings.Contains(text, part) == not {
			t.Errorf("%s: want %q in\n%s", what, want, text)
		}
	}
}
