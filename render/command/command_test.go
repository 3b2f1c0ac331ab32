// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/render/command"
)

var update = flag.Bool("update", false, "write docs/render-fields.md")

const input = "../testdata/input/one-node"

func run(t *testing.T, arguments ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = command.Main(t.Context(), arguments, &o, &e)
	return code, o.String(), e.String()
}

const fieldsHead = `# Fields that take effect when a control plane is rendered

Written by ` + "`sno-render fields`" + `. *Exported* fields have no effect on the static pods. An *ignored* field
causes a warning, a *refused* one an error.

`

// The page matches the output of the program (R-REN-2).
func TestFieldsPage(t *testing.T) {
	const page = "../../docs/render-fields.md"
	code, out, errs := run(t, "fields")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	want := fieldsHead + out
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("run `go test ./command -update` in render; the page is not what the program prints (-program +page):\n%s", diff)
	}
}

// A wrong command or an invalid input exits with 2, prints what to do, and writes nothing.
func TestFaulty(t *testing.T) {
	parent := t.TempDir()
	output := filepath.Join(parent, "rendered")
	broken := filepath.Join(t.TempDir(), "input")
	if err := os.CopyFS(broken, os.DirFS(input)); err != nil {
		t.Fatal(err)
	}
	server := filepath.Join(broken, "cluster-apiserver.yaml")
	content, err := os.ReadFile(server)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(server, append(content, "\nunknownField: 1\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(broken, "cluster-oauth.yaml")); err != nil {
		t.Fatal(err)
	}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		arguments []string
		code      int
		contains  []string
	}{
		"no input":        {[]string{"--output", output}, 2, []string{"--input and --output are required", "--help"}},
		"unknown flag":    {[]string{"--inptu", input}, 2, []string{"unknown flag: --inptu", "--help"}},
		"no folder":       {[]string{"--input", filepath.Join(parent, "none"), "--output", output}, 2, []string{"no such folder", "none", "--help"}},
		"two faults":      {[]string{"--input", broken, "--output", output, "--profile", "kubernetes", "--kubernetes-version", "1.35.2"}, 2, []string{"cluster-apiserver.yaml:", "unknownField", "OAuth", "2 faults, nothing was written"}},
		"no images":       {[]string{"--input", input, "--output", output}, 2, []string{"hyperkube", "nothing was written"}},
		"no payload":      {[]string{"--input", input, "--output", output, "--image-references", filepath.Join(parent, "none")}, 2, []string{"image references", "none"}},
		"full folder":     {[]string{"--input", input, "--output", full, "--profile", "kubernetes", "--kubernetes-version", "1.35.2"}, 2, []string{"cannot write the output", "not empty"}},
		"no folder there": {[]string{"--input", input, "--output", filepath.Join(full, "file", "below"), "--profile", "kubernetes", "--kubernetes-version", "1.35.2"}, 2, []string{"cannot write the output", "below"}},
		"both faulty":     {[]string{"--input", broken, "--output", full, "--profile", "kubernetes", "--kubernetes-version", "1.35.2"}, 2, []string{"unknownField", "cannot write the output", "nothing was written"}},
		"nothing written": {[]string{"rotate", "--dir", parent}, 1, []string{"was not written by sno-render"}},
		"rotate what":     {[]string{"rotate"}, 2, []string{"--dir is required"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := run(t, test.arguments...)
			if code != test.code || out != "" {
				t.Errorf("exit code %d, want %d; output %q", code, test.code, out)
			}
			for _, want := range test.contains {
				if !strings.Contains(errs, want) {
					t.Errorf("%q is not in the message:\n%s", want, errs)
				}
			}
			entries, err := os.ReadDir(parent)
			if err != nil {
				t.Fatal(err)
			}
			if len(entries) > 0 {
				t.Errorf("written: %v", entries)
			}
		})
	}
}

// Output can be rotated, nothing is due then, and rotate restores files that a crash left out.
func TestRenderAndRotate(t *testing.T) {
	output := filepath.Join(t.TempDir(), "rendered")
	arguments := []string{"--input", input, "--output", output, "--profile", "kubernetes", "--kubernetes-version", "1.35.2"}
	code, out, errs := run(t, arguments...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for _, want := range []string{"Rendered the control plane of node master-0", "manifests  ", "files      ", "The next renewal is"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in the output:\n%s", want, out)
		}
	}
	before := modes(t, output)
	for name, mode := range before {
		if mode.IsDir() && mode.Perm() != 0o700 || mode.IsRegular() && mode.Perm()&0o077 != 0 && !strings.HasSuffix(name, ".sh") {
			t.Errorf("%s has mode %v", name, mode)
		}
	}
	if code, _, errs := run(t, arguments...); code != 2 || !strings.Contains(errs, "not empty") {
		t.Errorf("a second run over the same folder ended with %d: %s", code, errs)
	}

	root := t.TempDir()
	code, out, errs = run(t, "rotate", "--dir", output, "--root", root)
	if code != 0 || !strings.Contains(out, "Nothing is due.") {
		t.Fatalf("exit code %d, output:\n%s%s", code, out, errs)
	}
	if diff := cmp.Diff(modes(t, filepath.Join(output, "files")), modes(t, root)); diff != "" {
		t.Errorf("on the node is not what is in files/ (-files +node):\n%s", diff)
	}
	manifest := filepath.Join(root, "etc/kubernetes/manifests/etcd-pod.yaml")
	if err := os.Remove(manifest); err != nil {
		t.Fatal(err)
	}
	code, out, errs = run(t, "rotate", "--dir", output, "--root", root)
	if code != 0 || strings.Count(out, "  wrote ") != 1 || !strings.Contains(out, manifest) {
		t.Errorf("exit code %d; only %s was missing, output:\n%s%s", code, manifest, out, errs)
	}
}

// Certificates that are not valid yet are renewed only by a clock that is known to be right.
func TestRotateAfterTheClockWasAhead(t *testing.T) {
	output := filepath.Join(t.TempDir(), "rendered")
	if code, _, errs := run(t, "--input", input, "--output", output, "--profile", "kubernetes", "--kubernetes-version", "1.35.2"); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	future := regexp.MustCompile(`(certificate-not-before: ")[^"]*`)
	err := filepath.WalkDir(filepath.Join(output, "manifests"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.Contains(path, "aggregator-client-signer") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, future.ReplaceAll(text, []byte("${1}2099-01-01T00:00:00Z")), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	code, out, errs := run(t, "rotate", "--dir", output, "--clock-is-right=false")
	if code == 0 || !strings.Contains(errs, "nothing was renewed: the certificate openshift-kube-apiserver-operator/aggregator-client-signer is valid from 2099-01-01T00:00:00Z") {
		t.Errorf("exit code %d, output:\n%s%s", code, out, errs)
	}
	code, out, errs = run(t, "rotate", "--dir", output, "--clock-is-right")
	if code != 0 || !strings.Contains(out, "changed  Secret openshift-kube-apiserver-operator/aggregator-client-signer") || !strings.Contains(errs, "2099") {
		t.Errorf("exit code %d, output:\n%s%s", code, out, errs)
	}
	if code, out, errs = run(t, "rotate", "--dir", output, "--clock-is-right=false"); code != 0 || !strings.Contains(out, "Nothing is due.") {
		t.Errorf("exit code %d, output:\n%s%s", code, out, errs)
	}
}

func modes(t *testing.T, root string) map[string]fs.FileMode {
	t.Helper()
	found := map[string]fs.FileMode{}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := entry.Info()
		found[name] = info.Mode()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
