// SPDX-License-Identifier: Apache-2.0

package framework_test

import (
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/testcluster/embedded"
)

func write(t *testing.T, mode os.FileMode, path, text string) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadOperators(t *testing.T) {
	dir := t.TempDir()
	plain := write(t, 0o600, filepath.Join(dir, "plain"), "text")
	service := filepath.Dir(write(t, 0o600, filepath.Join(dir, "services", "a.yaml"), "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n"))
	objects := func(name, text string) []string {
		return []string{filepath.Dir(write(t, 0o600, filepath.Join(dir, name, "a.yaml"), text))}
	}
	for _, test := range []struct {
		name                       string
		commands, folders, objects []string
		want                       string
		is                         error
	}{
		{"no command", []string{"ingress"}, nil, nil, `"ingress" is not NAME=COMMAND`, framework.ErrOperators},
		{"unknown name", []string{"dns=sh"}, nil, nil, `unknown name "dns", choose one of ingress, etcd, machineconfig, console, auth, approver`, framework.ErrOperators},
		{"name of the module", []string{"etcdguard=sh"}, nil, nil, `unknown name "etcdguard"`, framework.ErrOperators},
		{"twice", []string{"auth=sh", "auth=sh"}, nil, nil, "auth has two commands", framework.ErrOperators},
		{"empty", []string{"auth= "}, nil, nil, "auth: its command is empty", framework.ErrOperators},
		{"open quote", []string{"auth=sh 'a"}, nil, nil, "auth: read command", framework.ErrOperators},
		{"no program", []string{"auth=" + filepath.Join(dir, "gone") + " start"}, nil, nil, "auth: find its program", fs.ErrNotExist},
		{"not in PATH", []string{"auth=sno-such-operator"}, nil, nil, "executable file not found in $PATH", framework.ErrOperators},
		{"not executable", []string{"auth=" + plain}, nil, nil, "permission denied", fs.ErrPermission},
		{"no folder", nil, []string{filepath.Join(dir, "gone")}, nil, "no such file", fs.ErrNotExist},
		{"other objects", nil, []string{service}, nil, `a.yaml: it has "Service" of "v1"`, embedded.ErrCRDs},
		{"no folder of objects", nil, nil, []string{filepath.Join(dir, "gone")}, "no such file", fs.ErrNotExist},
		{"no object", nil, nil, objects("none", "# comment\n"), "none has no object in a YAML or JSON file", framework.ErrOperators},
		{"no YAML", nil, nil, objects("text", "text"), "a.yaml: ", framework.ErrOperators},
		{"no name", nil, nil, objects("unnamed", "apiVersion: v1\nkind: Service\n"), "wanted objects with apiVersion, kind and metadata.name", framework.ErrOperators},
		{"list", nil, nil, objects("list", "apiVersion: v1\nkind: List\nitems: []\nmetadata: {name: l}\n"), "and no List", framework.ErrOperators},
		{"definition", nil, nil, objects("crd", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n"),
			"CustomResourceDefinition a belongs into a folder of --operator-crds", framework.ErrOperators},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := framework.ReadOperators(test.commands, test.folders, test.objects...)
			if !errors.Is(err, framework.ErrOperators) || !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %v with %q", err, test.is, test.want)
			}
		})
	}
}

func TestOperatorFlags(t *testing.T) {
	folder := filepath.Dir(write(t, 0o600, filepath.Join(t.TempDir(), "a.yaml"), "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n"))
	objects := filepath.Dir(write(t, 0o600, filepath.Join(t.TempDir(), "a.yaml"), "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n"))
	args := []string{"--operator", `etcd=sh -c 'a "b"' {kubeconfig}`, "-operator=ingress=sh", "-operator-crds", folder, "--operator-objects", objects}
	hosts := map[framework.Module][]string{framework.Ingress: {"--stock"}, framework.Console: {"--stock", "-v=2"}, framework.Auth: nil, framework.EtcdGuard: nil}
	want := []report.Operator{
		{Module: "ingress", Command: "sh"}, {Module: "etcdguard", Command: `sh -c 'a "b"' {kubeconfig}`},
		{Module: "console", Command: "console-operator --stock -v=2", StandIn: true}, {Module: "auth", Command: "authentication-operator", StandIn: true},
	}
	var given framework.OperatorFlags
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	given.Bind(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	operators, err := given.Read()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, operators.Report(hosts)); diff != "" {
		t.Error(diff)
	}
	if got := operators.Modules(); !slices.Equal(got, []framework.Module{framework.Ingress, framework.EtcdGuard}) {
		t.Errorf("modules: %v", got)
	}
}
