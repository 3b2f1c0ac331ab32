package outside

import (
	"bufio"
	"bytes"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch/patchtest"
)

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

// The program as a script calls it: the answer on standard output and nothing else there, and an exit code for each way to end.
func TestProgram(t *testing.T) {
	w := newWorld(t)
	w.expects("worker-1")
	w.write("bad.yaml", []byte("version: 1\nnodes:\n- name: worker-1\n  window: {notBefore: tomorrow, notAfter: 2026-01-31T08:00:00Z}\n- name: Worker-2\n"))
	pending := w.joins("worker-9")
	w.write("nowhere", []byte(strings.Replace("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'http://ADDRESS'}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n", "ADDRESS", patchtest.FreeAddress(t), 1)))
	good := []string{"--inventory=" + w.path("nodes.yaml"), "--kubeconfig=" + w.kubeconfig, "--kubelet-ca=" + w.path("ca.pem"), "--once"}
	for name, test := range map[string]struct {
		args           []string
		code           int
		stdout, stderr []string
	}{
		"pending":          {good, 1, []string{pending, "is not in the inventory"}, nil},
		"help":             {[]string{"--help"}, 0, nil, []string{"Exit codes"}},
		"flags":            {[]string{"--once"}, 2, nil, []string{"--inventory is missing", "approve --help"}},
		"no inventory":     {append(good, "--inventory=/nowhere.yaml"), 2, nil, []string{"/nowhere.yaml: no such file"}},
		"a bad inventory":  {append(good, "--inventory="+w.path("bad.yaml")), 2, nil, []string{"line 4, column 23: nodes[0].window.notBefore", "line 5, column 9: nodes[1].name"}},
		"no kubeconfig":    {append(good, "--kubeconfig="+w.path("none")), 3, nil, []string{"give --kubeconfig"}},
		"no cluster":       {append(good, "--kubeconfig="+w.path("nowhere"), "--timeout=2s"), 3, nil, []string{"connection refused"}},
		"no certificates":  {append(good, "--kubelet-ca="+w.path("nodes.yaml")), 3, nil, []string{"--kubelet-ca=", "no certificate in PEM form"}},
		"no such CA":       {append(good, "--kubelet-ca="+w.path("none")), 3, nil, []string{"--kubelet-ca=", "no such file"}},
		"nobody to verify": {append(good[:2:2], "--once", "-o=json"), 1, []string{`"complete":true`}, nil},
	} {
		var stdout, stderr bytes.Buffer
		command := patchtest.Command(&stdout, test.args...)
		command.Stderr = &stderr
		code := exitCode(t, command.Run())
		if code != test.code || (len(test.stdout) == 0) != (stdout.Len() == 0) || (len(test.stderr) == 0) != (stderr.Len() == 0) {
			t.Errorf("%s: exit code %d, want %d; on standard output\n%s\nand on standard error\n%s", name, code, test.code, &stdout, &stderr)
		}
		for _, want := range test.stdout {
			if !strings.Contains(stdout.String(), want) {
				t.Errorf("%s: no %q on standard output\n%s", name, want, &stdout)
			}
		}
		for _, want := range test.stderr {
			if !strings.Contains(stderr.String(), want) {
				t.Errorf("%s: no %q on standard error\n%s", name, want, &stderr)
			}
		}
	}
}

// Being stopped is how watching ends.
func TestProgramStopped(t *testing.T) {
	w := newWorld(t)
	w.expects("worker-1")
	joins := w.joins("worker-1")
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		var out bytes.Buffer
		command := patchtest.Command(&out, "--inventory="+w.path("nodes.yaml"), "--kubeconfig="+w.kubeconfig, "--kubelet-ca="+w.path("ca.pem"), "--watch")
		command.Stderr = nil
		complaints, err := command.StderrPipe()
		w.must(err)
		w.must(command.Start())
		if line, err := bufio.NewReader(complaints).ReadString('\n'); err != nil || !strings.HasPrefix(line, "Watching") {
			t.Fatalf("it says %q, %v", line, err)
		}
		patchtest.Eventually(t, "it is approved", func() error {
			if w.approval(joins) != ours {
				return errNoAnswer
			}
			return nil
		})
		w.must(command.Process.Signal(signal))
		if code := exitCode(t, command.Wait()); code != 0 {
			t.Errorf("%s: exit code %d\n%s", signal, code, &out)
		}
	}
}

// The role of config/outside is what it needs, with the authority that OpenShift publishes, and without it it says what is missing.
func TestRole(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"sno-system", "openshift-config-managed"} {
		w.must(client.IgnoreAlreadyExists(w.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})))
	}
	w.must(w.admin.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config-managed", Name: "csr-controller-ca"}, Data: map[string]string{"ca-bundle.crt": string(w.ca.pem)},
	}))
	for i, u := range patchtest.Manifests(t, "../../config/outside", "service_account.yaml", "role.yaml", "role_binding.yaml") {
		w.must(w.admin.Create(t.Context(), u))
		if i > 0 {
			continue
		}
		w.kubeconfig = w.server.AccountKubeconfig(t, "sno-system", "approve", "")
	}
	w.expects("worker-1")
	w.add("worker-2")
	w.answers("worker-2", w.ca.serving(t, "worker-2", "worker-2", "10.0.0.1"))
	joins, serves := w.joins("worker-1"), w.serves("worker-2", "worker-2", "10.0.0.1")
	var code int
	var said string
	patchtest.Eventually(t, "the role is known", func() error {
		var out, complaints string
		code, out, complaints = w.once("--kubelet-ca=")
		if said = out + complaints; strings.Contains(complaints, "forbidden") {
			return errNoAnswer
		}
		return nil
	})
	if w.isApproved(true, joins, serves); code != 0 {
		t.Errorf("exit code %d: %s", code, said)
	}

	role := patchtest.Manifests(t, "../../config/outside", "role.yaml")[0]
	w.must(w.admin.Get(t.Context(), client.ObjectKeyFromObject(role), role))
	role.Object["rules"] = slices.Delete(role.Object["rules"].([]any), 2, 3) // the signers
	w.must(w.admin.Update(t.Context(), role))
	foreign := w.serves("worker-2", "worker-2", "10.0.0.1")
	patchtest.Eventually(t, "the role is missing", func() error {
		if code, _, said = w.once("--kubelet-ca="); !strings.Contains(said, "config/outside has the role") {
			return errNoAnswer
		}
		return nil
	})
	if w.isApproved(false, foreign); code != 3 {
		t.Errorf("exit code %d: %s", code, said)
	}
}
