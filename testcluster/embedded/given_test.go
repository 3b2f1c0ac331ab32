// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/testcluster/eventually"
)

const someCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  names: {kind: Thing, plural: things}
  scope: Cluster
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`

func TestCRDFiles(t *testing.T) {
	const other = "kind: Service\napiVersion: v1\nmetadata: {name: s}\n"
	for _, test := range []struct {
		name    string
		folders []map[string]string
		files   []string
		want    string
	}{
		{"several kinds of files", []map[string]string{
			{"a.yaml": "# comment\n---\n" + someCRD, "b.txt": "no YAML", "c.json": `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "c"}}`},
		}, []string{"0/a.yaml", "0/c.json"}, ""},
		{"several folders", []map[string]string{{"a.yaml": someCRD}, {"b.yml": strings.ReplaceAll(someCRD, "things", "others")}}, []string{"0/a.yaml", "1/b.yml"}, ""},
		{"another kind", []map[string]string{{"a.yaml": someCRD + "---\n" + other}}, nil, `a.yaml: it has "Service" of "v1"`},
		{"old version", []map[string]string{{"a.yaml": strings.Replace(someCRD, "/v1", "/v1beta1", 1)}}, nil, `"apiextensions.k8s.io/v1beta1"`},
		{"not approved", []map[string]string{{"a.yaml": strings.ReplaceAll(someCRD, "example.com", "policy.k8s.io")}}, nil,
			"things.policy.k8s.io needs the annotation api-approved.kubernetes.io"},
		{"approved", []map[string]string{{"a.yaml": strings.NewReplacer("example.com", "policy.k8s.io",
			"metadata: {", `metadata: {annotations: {api-approved.kubernetes.io: "unapproved, for a test"}, `).Replace(someCRD)}}, []string{"0/a.yaml"}, ""},
		{"a similar group", []map[string]string{{"a.yaml": strings.ReplaceAll(someCRD, "example.com", "cluster.x-k8s.io")}}, []string{"0/a.yaml"}, ""},
		{"no YAML", []map[string]string{{"a.yaml": "{"}}, nil, "a.yaml: "},
		{"no object", []map[string]string{{"a.yaml": "text"}}, nil, "a.yaml: "},
		{"no document", []map[string]string{{"a.yaml": "# comment\n"}}, nil, "it has no document"},
		{"no file", []map[string]string{{"README.md": "text"}}, nil, "has no YAML or JSON file"},
		{"twice in a file", []map[string]string{{"a.yaml": someCRD + "---\n" + someCRD}}, nil, "both define things.example.com"},
		{"twice in two folders", []map[string]string{{"a.yaml": someCRD}, {"a.yaml": someCRD}}, nil, "both define things.example.com"},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			var folders, want []string
			for i, files := range test.folders {
				folders = append(folders, filepath.Join(root, strconv.Itoa(i)))
				if err := os.Mkdir(folders[i], 0o755); err != nil {
					t.Fatal(err)
				}
				for name, text := range files {
					if err := os.WriteFile(filepath.Join(folders[i], name), []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, file := range test.files {
				want = append(want, filepath.Join(root, file))
			}
			got, err := CRDFiles(folders...)
			if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, ErrCRDs) || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v, want %s", err, test.want)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := CRDFiles(filepath.Join(t.TempDir(), "gone")); !errors.Is(err, ErrCRDs) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}

// Ended is only called for an end that was not requested, children of a group end with it, and the folder and the
// variables are those of the process.
func TestRunProcess(t *testing.T) {
	ctx := testContext(t)
	c := sharedCluster(t)
	dir, ended := t.TempDir(), make(chan string, 1)
	p, err := c.RunProcess(ctx, Process{
		Name: "process", Path: "/bin/sh", Args: []string{"-c", `sleep 1000 & echo $! >child; mv child "$NAME"; wait`}, Dir: dir, Env: []string{"NAME=started"},
		Ended: func(_ *Component, how string) { ended <- how }, Group: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	child := func() (pid int) {
		t.Helper()
		eventually.Succeeds(t, "the child has started", func() error {
			text, err := os.ReadFile(filepath.Join(dir, "started"))
			if err == nil {
				pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
			}
			return err
		})
		if err := os.Remove(filepath.Join(dir, "started")); err != nil {
			t.Fatal(err)
		}
		return pid
	}
	gone := func(pid int) {
		t.Helper()
		eventually.Succeeds(t, "the child has ended", func() error {
			if status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat")); err == nil && !strings.Contains(string(status), ") Z ") {
				return errors.New("it still runs")
			}
			return nil
		})
	}
	for name, end := range map[string]func() error{"Kill": p.Kill, "Terminate": func() error { return p.Terminate(ctx) }} {
		pid := child()
		if err := end(); err != nil {
			t.Fatal(err)
		}
		gone(pid)
		select {
		case how := <-ended:
			t.Errorf("%s counts as an end by itself: %s", name, how)
		case <-time.After(pollInterval):
		}
		if err := p.Start(ctx); err != nil {
			t.Fatal(err)
		}
	}
	pid := child()
	if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case how := <-ended:
		if !strings.Contains(how, "killed") {
			t.Errorf("it ended with %q", how)
		}
	case <-ctx.Done():
		t.Fatal("its end was not reported")
	}
	gone(pid)
}
