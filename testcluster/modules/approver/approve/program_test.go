// SPDX-License-Identifier: Apache-2.0

package approve_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/modules"
)

// Results go to standard output, messages to standard error. The exit codes are the documented ones.
func TestProgram(t *testing.T) {
	c := newTestCluster(t)
	c.allowNodes("worker-1")
	c.write("bad.yaml", "version: 1\nnodes:\n- name: worker-1\n  window: {notBefore: tomorrow, notAfter: 2026-01-31T08:00:00Z}\n- name: Worker-2\n")
	c.write("nowhere", "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'http://"+apiserver.FreeAddress(t)+
		"'}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n")
	foreign := c.requestClient("worker-9")
	good := slices.Clip(append(c.args(), "--once"))
	for name, test := range map[string]struct {
		args           []string
		code           int
		stdout, stderr []string
	}{
		"pending":         {good, 1, []string{foreign, "is not in the inventory"}, nil},
		"help":            {[]string{"--help"}, 0, nil, []string{"Exit codes"}},
		"flags":           {[]string{"--once"}, 2, nil, []string{"--inventory is missing", "approve --help"}},
		"no inventory":    {append(good, "--inventory=/nowhere.yaml"), 2, nil, []string{"/nowhere.yaml: no such file"}},
		"a bad inventory": {append(good, "--inventory="+c.path("bad.yaml")), 2, nil, []string{"line 4, column 23: nodes[0].window.notBefore", "line 5, column 9: nodes[1].name"}},
		"no kubeconfig":   {append(good, "--kubeconfig="+c.path("none")), 3, nil, []string{"set --kubeconfig"}},
		"no cluster":      {append(good, "--kubeconfig="+c.path("nowhere"), "--timeout=2s"), 3, nil, []string{"connection refused"}},
		"no certificates": {append(good, "--kubelet-ca="+c.path("nodes.yaml")), 3, nil, []string{"--kubelet-ca=", "no certificate in PEM form"}},
		"no such CA":      {append(good, "--kubelet-ca="+c.path("none")), 3, nil, []string{"--kubelet-ca=", "no such file"}},
		"no authority":    {append(c.args()[:2], "--once", "-o=json"), 1, []string{`"complete":true`}, nil},
	} {
		var stdout, stderr bytes.Buffer
		command := apiserver.Command(&stdout, test.args...)
		command.Stderr = &stderr
		_ = command.Run() // the exit code has the error
		code := command.ProcessState.ExitCode()
		if code != test.code || (len(test.stdout) == 0) != (stdout.Len() == 0) || (len(test.stderr) == 0) != (stderr.Len() == 0) {
			t.Errorf("%s: exit code %d, want %d; on standard output\n%s\nand on standard error\n%s", name, code, test.code, &stdout, &stderr)
		}
		for _, want := range append(test.stdout, test.stderr...) { // the other stream is empty
			if !strings.Contains(stdout.String()+stderr.String(), want) {
				t.Errorf("%s: want %q on standard output\n%s\nor on standard error\n%s", name, want, &stdout, &stderr)
			}
		}
	}
}

// With --watch, a signal ends the program with 0.
func TestProgramStopped(t *testing.T) {
	c := newTestCluster(t)
	c.allowNodes("worker-1:2")
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		var out, messages bytes.Buffer
		command := apiserver.Command(&out, append(c.args(), "--watch")...)
		command.Stderr = &messages
		apiserver.NoError(c, command.Start())
		c.waitUntilApproved(c.requestClient("worker-1"))
		apiserver.NoError(c, command.Process.Signal(signal))
		if err := command.Wait(); err != nil || !strings.HasPrefix(messages.String(), "Watching") {
			t.Errorf("%s: %v\n%s%s", signal, err, &out, &messages)
		}
	}
}

// The role of config/approve suffices, with the authority that OpenShift publishes. A missing rule is reported.
func TestRole(t *testing.T) {
	c := newTestCluster(t)
	for _, name := range []string{"sno-system", "openshift-config-managed"} {
		c.server.Put(t, modules.Object("v1", "Namespace", "", name).Unstructured())
	}
	ca := must(os.ReadFile(c.path("ca.pem")))
	apiserver.NoError(c, c.admin.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config-managed", Name: "csr-controller-ca"}, Data: map[string]string{"ca-bundle.crt": string(ca)},
	}))
	for _, u := range apiserver.Manifests(t, "testdata/module/config/approve", "service_account.yaml", "role.yaml", "role_binding.yaml") {
		c.server.Put(t, u)
	}
	c.kubeconfig = c.server.AccountKubeconfig(t, "sno-system", "approve", "")
	c.allowNodes("worker-1")
	c.createNode("worker-2")
	c.presentCertificate("worker-2", c.ca, "worker-2", "10.0.0.1")
	joins, serves := c.requestClient("worker-1"), c.requestServing("worker-2", "worker-2", "10.0.0.1")
	// ends repeats runs until one ends like that: the API server learns of the role later.
	ends := func(want int, message string) {
		t.Helper()
		apiserver.Eventually(t, "the role is known", func() error {
			if code, out, messages := c.runOnce("--kubelet-ca="); code != want || !strings.Contains(messages, message) {
				return fmt.Errorf("exit code %d: %s%s", code, out, messages)
			}
			return nil
		})
	}
	ends(0, "")
	c.checkApproved(true, joins, serves)

	role := apiserver.Manifests(t, "testdata/module/config/approve", "role.yaml")[0]
	apiserver.NoError(c, c.admin.Get(t.Context(), client.ObjectKeyFromObject(role), role))
	role.Object["rules"] = slices.Delete(role.Object["rules"].([]any), 2, 3) // the signers
	apiserver.NoError(c, c.admin.Update(t.Context(), role))
	foreign := c.requestServing("worker-2", "worker-2", "10.0.0.1")
	ends(3, "config/approve has the role")
	c.checkApproved(false, foreign)
}

// compact removes former revisions from etcd.
func compact(t *testing.T, server *apiserver.Server, revision string) {
	t.Helper()
	answer, err := http.Post(server.EtcdURL()+"/v3/kv/compaction", "application/json", strings.NewReader(`{"revision":"`+revision+`","physical":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s %v", answer.Status, text, err)
	}
}
