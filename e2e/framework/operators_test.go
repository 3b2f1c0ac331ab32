// SPDX-License-Identifier: Apache-2.0

package framework_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/testcluster/assets"
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

// lines is a log that several programs write.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// An operator that is a command runs in the folder of this process with its own kubeconfig, is restarted as a container
// is, and its definitions replace those of the cluster.
func TestOperators(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for the back-off of an operator; make proof runs it")
	}
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	script := write(t, 0o700, filepath.Join(dir, "operator"), `#!/bin/sh
echo "started with $* in $PWD as $KUBECONFIG"
trap 'echo terminated; exit 0' TERM
while :; do sleep 1000 & wait $!; done
`)
	deaf := write(t, 0o700, filepath.Join(dir, "deaf"), "#!/bin/sh\ntrap '' TERM\necho started\nwhile :; do sleep 1000; done\n")
	definition := givenMachineConfigurations(t, ctx, filepath.Join(dir, "crds"))
	operators, err := framework.ReadOperators(
		[]string{"machineconfig=" + script + " --kubeconfig={kubeconfig} 'one word'", "console=" + deaf}, []string{filepath.Join(dir, "crds")})
	if err != nil {
		t.Fatal(err)
	}
	var progress lines
	s, err := framework.Start(ctx, framework.Config{
		Scenario: "none-sno", Hosts: map[framework.Module][]string{framework.MachineConfig: {"--stock"}, framework.Console: {"--stock"}}, Operators: operators,
		Progress: &progress,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	live := &apiextensionsv1.CustomResourceDefinition{}
	if err := s.Cluster.Client().Get(ctx, client.ObjectKey{Name: definition}, live); err != nil || !slices.Equal(live.Spec.Names.ShortNames, []string{"given"}) {
		t.Errorf("the definition is not that of the folder: %v, %v", live.Spec.Names.ShortNames, err)
	}
	program := s.Cluster.Program(framework.MachineConfig.Host().Name)
	started := func(times int) {
		t.Helper()
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, waitTimeout, true, func(context.Context) (bool, error) {
			return strings.Count(program.LogTail(10_000), "started") == times, nil
		})
		if err != nil {
			t.Fatalf("it has not started %d times:\n%s\n%s", times, program.LogTail(10_000), &progress)
		}
	}
	started(1)
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(s.Cluster.Dir(), "administrator-given-machine-config-operator.kubeconfig")
	if want := fmt.Sprintf("started with --kubeconfig=%s one word in %s as %s\n", kubeconfig, folder, kubeconfig); program.LogTail(10_000)+"\n" != want {
		t.Errorf("it was started with\n%s\nwant\n%s", program.LogTail(10_000), want)
	}
	if err := s.WaitHost(ctx, framework.MachineConfig, time.Millisecond); err != nil {
		t.Errorf("something waits for the conditions of a command: %v", err)
	}

	// Wanted ends are no exits.
	waiting, cancel := s.UntilOperatorEnds(ctx)
	defer cancel()
	if err := s.RestartOperator(ctx, framework.MachineConfig); err != nil {
		t.Fatal(err)
	}
	started(2)
	began := time.Now()
	if err := s.RestartOperator(ctx, framework.Console); err != nil || time.Since(began) < 30*time.Second {
		t.Errorf("an operator that ignores SIGTERM: %v after %s", err, time.Since(began))
	}
	if waiting.Err() != nil || !strings.Contains(program.LogTail(10_000), "terminated") {
		t.Errorf("after a restart: %v\n%s", context.Cause(waiting), program.LogTail(10_000))
	}

	// Others are reported, and it starts again.
	if err := syscall.Kill(program.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-waiting.Done():
	case <-time.After(waitTimeout):
		t.Fatal("its end was not noticed")
	}
	for name, text := range map[string]string{"error": context.Cause(waiting).Error(), "progress": progress.String()} {
		if !strings.Contains(text, "ended by itself: machineconfig, signal: killed ("+script) || !strings.Contains(text, "log ends with:\nstarted with --kubeconfig") {
			t.Errorf("%s: %s", name, text)
		}
	}
	if !errors.Is(context.Cause(waiting), framework.ErrOperatorEnded) {
		t.Errorf("the cause is %v", context.Cause(waiting))
	}
	started(3)
	want := []report.Operator{
		{Module: "machineconfig", Command: script + " --kubeconfig={kubeconfig} 'one word'", Exits: 1}, {Module: "console", Command: deaf},
	}
	if diff := cmp.Diff(want, s.HostOperators()); diff != "" {
		t.Error(diff)
	}

	// A wanted start comes first.
	if err := syscall.Kill(program.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-program.Exited()
	if err := s.RestartOperator(ctx, framework.MachineConfig); err != nil {
		t.Fatal(err)
	}
	if err := s.StopOperators(ctx); err != nil {
		t.Fatal(err)
	}
	select {
	case <-time.After(11 * time.Second): // more than the back-off
	case <-ctx.Done():
	}
	if program.PID() != 0 {
		t.Error("it has started again after StopOperators")
	}
}

// givenMachineConfigurations writes another definition of a kind that not every cluster has, and returns its name.
func givenMachineConfigurations(t *testing.T, ctx context.Context, folder string) string {
	t.Helper()
	module, err := assets.ModuleFolder(ctx, "github.com/openshift/api")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(module, "operator", "v1", "zz_generated.crd-manifests", "0000_80_machine-config_01_machineconfigurations-Default.crd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(text, definition); err != nil {
		t.Fatal(err)
	}
	definition.Spec.Names.ShortNames = []string{"given"}
	if text, err = yaml.Marshal(definition); err != nil {
		t.Fatal(err)
	}
	write(t, 0o600, filepath.Join(folder, "definition.yaml"), string(text))
	return definition.Name
}

// A program that the kernel does not start is an error, and nothing stays.
func TestOperatorThatDoesNotStart(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a cluster; make proof runs it")
	}
	t.Parallel()
	operators, err := framework.ReadOperators([]string{"auth=" + write(t, 0o700, filepath.Join(t.TempDir(), "operator"), "no program")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := framework.Start(t.Context(), framework.Config{Scenario: "none-sno", Hosts: map[framework.Module][]string{framework.Auth: nil}, Operators: operators})
	if err == nil {
		s.Stop()
	}
	if !errors.Is(err, syscall.ENOEXEC) || !strings.Contains(err.Error(), "operator of auth: start authentication-operator") {
		t.Errorf("%v", err)
	}
}
