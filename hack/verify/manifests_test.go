// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const safeDeployment = `apiVersion: v1
kind: Namespace
metadata:
  name: sno-system
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: one
spec:
  template:
    spec:
      priorityClassName: system-cluster-critical
      serviceAccountName: one
      securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: controller
        image: ko://github.com/solonode/sno/patch/cmd/one
        args: [run, --known=yes]
        livenessProbe: {httpGet: {port: 1}}
        readinessProbe: {httpGet: {port: 1}}
        resources: {requests: {cpu: 5m, memory: 40Mi}}
        securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
`

func TestDeploymentFindings(t *testing.T) {
	tests := map[string]struct{ old, new, want string }{
		"nothing wrong":   {"", "", ""},
		"no priority":     {"priorityClassName: system-cluster-critical", "", "lacks the priority class system-cluster-critical"},
		"default account": {"serviceAccountName: one", "", "has no service account"},
		"root":            {"runAsNonRoot: true, ", "", "may run as root"},
		"no seccomp":      {"RuntimeDefault", "Unconfined", "lacks the seccomp profile RuntimeDefault"},
		"escalation":      {"allowPrivilegeEscalation: false, ", "", "controller may escalate its privileges"},
		"writable root":   {"readOnlyRootFilesystem: true, ", "", "controller may write its root file system"},
		"capabilities":    {"drop: [ALL]", "drop: [KILL]", "controller does not drop all capabilities"},
		"no probe":        {"readinessProbe: {httpGet: {port: 1}}", "", "controller lacks a probe"},
		"no requests":     {"requests: {cpu: 5m, ", "requests: {", "controller does not request CPU and memory"},
		"limits":          {"requests: {", "limits: {cpu: 1}, requests: {", "controller has limits"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pods, err := podsOf(strings.Replace(safeDeployment, test.old, test.new, 1))
			if err != nil || len(pods) != 1 {
				t.Fatalf("%d Deployments, %v", len(pods), err)
			}
			var want []string
			if test.want != "" {
				want = []string{"Deployment one: " + test.want}
			}
			if diff := cmp.Diff(want, pods[0].faults()); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFlagsIn(t *testing.T) {
	help := "Usage of one:\n  -known\n    \tsay -more than that\n      --long string   text\n  -o, --output string\n"
	if diff := cmp.Diff([]string{"known", "long", "output"}, flagsIn(help)); diff != "" {
		t.Errorf("flags (-want +got):\n%s", diff)
	}
}

// TestManifests uses a stand-in for kustomize, which tools/run starts, and a real program.
func TestManifests(t *testing.T) {
	files := sample()
	files["patch/cmd/one/main.go"] = "// Command one is small.\npackage main\n\nimport (\n\t\"flag\"\n\t\"os\"\n)\n\nfunc main() {\n" +
		"\tflags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)\n\tflags.Bool(\"known\", false, \"\")\n\t_ = flags.Parse(os.Args[2:])\n}\n"
	files["config/kustomization.yaml"] = "resources: [rendered.yaml]\n"
	files["config/rendered.yaml"] = safeDeployment
	files["tools/run"] = "#!/bin/sh\nexec cat \"$3/rendered.yaml\"\n"
	ws := repository(t, files)
	if err := os.Chmod(ws.Path("tools/run"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ old, new, want string }{
		"nothing wrong":   {"", "", ""},
		"unknown flag":    {"--known=yes", "--unknown=yes", "patch/cmd/one: has no flag --unknown, which a manifest uses"},
		"unknown program": {"cmd/one", "cmd/two", "patch/cmd/two: its help shows no flags"},
		"no such module":  {"sno/patch/", "sno/patches/", "no module of this repository has this program"},
		"another's image": {"ko://github.com/solonode/sno/patch/cmd/one", "example.com/one:1", ""},
		"unsafe":          {"runAsNonRoot: true, ", "", "config: Deployment one: may run as root"},
		"not YAML":        {"kind: Deployment", "kind: [", "config: reading what was rendered"},
	} {
		if err := os.WriteFile(ws.Path("config/rendered.yaml"), []byte(strings.Replace(safeDeployment, test.old, test.new, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		err := checkManifests(t.Context(), ws, io.Discard)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
	if err := os.Remove(ws.Path("config/rendered.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := checkManifests(t.Context(), ws, io.Discard); err == nil || !strings.Contains(err.Error(), "config: kustomize build") {
		t.Errorf("does not render: got %v", err)
	}
}
