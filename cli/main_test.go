package cli_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/solonode/sno/cli"
	"github.com/solonode/sno/patch/patchtest"
)

var shared = patchtest.NewShared(patchtest.Options{CRDs: []string{
	patchtest.Infrastructures, patchtest.Ingresses, patchtest.IngressControllers, patchtest.ClusterVersions, patchtest.Consoles,
}})

func TestMain(m *testing.M) {
	patchtest.BeProgram(func(args []string) int {
		return cli.Main(args, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	})
	os.Exit(shared.Main(m))
}

// said is what one run of the program came to.
type said struct {
	out, err string
	code     int
}

// run runs the program in this process, without a cluster unless the arguments name one.
func run(t *testing.T, args ...string) said {
	t.Helper()
	t.Setenv("KUBECONFIG", os.DevNull)
	var out, errOut bytes.Buffer
	code := cli.Main(args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	return said{out.String(), errOut.String(), code}
}
