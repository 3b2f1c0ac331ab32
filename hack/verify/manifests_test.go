// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/solonode/sno/hack/workspace"
)

// repository makes a repository of the files.
func repository(t *testing.T, files map[string]string) repo {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ws, err := workspace.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	r := repo{ws, ws.Modules}
	if err := r.run(t.Context(), ".", "git", "init", "--quiet"); err != nil {
		t.Fatal(err)
	}
	return r
}

const safeDeployment = `kind: Namespace
---
kind: Deployment
metadata: {name: one}
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

// A stand-in for kustomize, which tools/run starts, and a real program.
func TestManifests(t *testing.T) {
	r := repository(t, map[string]string{
		"go.work":      "go 1.26.0\n\nuse ./patch\n",
		"patch/go.mod": "module github.com/solonode/sno/patch\n\ngo 1.25.0\n",
		"patch/cmd/one/main.go": "package main\n\nimport (\n\t\"flag\"\n\t\"os\"\n)\n\nfunc main() {\n" +
			"\tflags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)\n\tflags.Bool(\"known\", false, \"\")\n\t_ = flags.Parse(os.Args[2:])\n}\n",
		"config/kustomization.yaml": "resources: [rendered.yaml]\n",
		"tools/run":                 "#!/bin/sh\nexec cat \"$3/rendered.yaml\"\n",
	})
	for _, test := range []struct{ old, new, want string }{
		{},
		{"--known=yes", "--unknown=yes", "patch/cmd/one: has no flag --unknown, which a manifest uses"},
		{"cmd/one", "cmd/two", "patch/cmd/two: its help shows no flags"},
		{"ko://github.com/solonode/sno/patch/cmd/one", "example.com/one:1", ""},
		{"kind: Deployment", "kind: [", "config: reading what was rendered"},
		{"priorityClassName: system-cluster-critical", "", "lacks the priority class system-cluster-critical"},
		{"serviceAccountName: one", "", "has no service account"},
		{"runAsNonRoot: true, ", "", "config: Deployment one: may run as root"},
		{"RuntimeDefault", "Unconfined", "lacks the seccomp profile RuntimeDefault"},
		{"allowPrivilegeEscalation: false, ", "", "controller may escalate its privileges"},
		{"readOnlyRootFilesystem: true, ", "", "controller may write its root file system"},
		{"drop: [ALL]", "drop: [KILL]", "controller does not drop all capabilities"},
		{"readinessProbe: {httpGet: {port: 1}}", "", "controller lacks a probe"},
		{"requests: {cpu: 5m, ", "requests: {", "controller does not request CPU and memory"},
		{"requests: {", "limits: {cpu: 1}, requests: {", "controller has limits"},
	} {
		if err := os.WriteFile(r.Path("config/rendered.yaml"), []byte(strings.Replace(safeDeployment, test.old, test.new, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		err := checkManifests(t.Context(), r)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%q for %q: got %v, want %q", test.new, test.old, err, test.want)
		}
	}
	if err := os.Remove(r.Path("config/rendered.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := checkManifests(t.Context(), r); err == nil || !strings.Contains(err.Error(), "kustomize") {
		t.Errorf("does not render: got %v", err)
	}
}
