// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/patch/golden"
)

const gathered = "testdata/gather/sno-with-workers/input"

func TestGolden(t *testing.T) {
	golden.Test(t, "testdata/gather", func(t *testing.T, _ fs.FS) map[string]string {
		input := filepath.Join("testdata/gather", filepath.Base(t.Name()), "input")
		got := map[string]string{}
		for name, args := range map[string][]string{
			"plan.txt": {"plan"}, "plan.yaml": {"plan", "-o", "yaml"}, "plan-forced.txt": {"plan", "--force-conflicts", "--modules", "auth"},
			"names.txt": {"plan", "-o", "name"}, "diff.txt": {"diff"}, "status.txt": {"status", "-o", "wide"}, "topology.txt": {"topology"},
		} {
			is := run(t, append(args, "--must-gather", input)...)
			wantCode := 0
			if name == "diff.txt" && is.out != "" {
				wantCode = 1
			}
			if is.err != "" || is.code != wantCode {
				t.Errorf("%v: exit code %d, want %d\n%s", args, is.code, wantCode, is.err)
			}
			got[name] = regexp.MustCompile(`(?m) +$`).ReplaceAllString(is.out, "") // editors remove them too
		}
		return got
	})
}

// pack writes a .tar.gz of the must-gather with further, empty files.
func pack(t *testing.T, others ...string) string {
	t.Helper()
	folder, file := t.TempDir(), filepath.Join(t.TempDir(), "must-gather.tar.gz")
	made, err := os.Create(file)
	zipped := gzip.NewWriter(made)
	packed := tar.NewWriter(zipped)
	err = errors.Join(err, os.CopyFS(filepath.Join(folder, "must-gather.local.1/quay-io-openshift"), os.DirFS(gathered)), packed.AddFS(os.DirFS(folder)))
	for _, name := range others {
		err = errors.Join(err, packed.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Typeflag: tar.TypeReg}))
	}
	if err := errors.Join(err, packed.Close(), zipped.Close(), made.Close()); err != nil {
		t.Fatal(err)
	}
	return file
}

// A packed must-gather is read like its folder, without logs.
func TestArchive(t *testing.T) {
	want := run(t, "topology", "--must-gather", gathered)
	file := pack(t, "must-gather.local.1/quay-io-openshift/namespaces/x/core/pods/p/logs/current.log")
	if diff := cmp.Diff(want, run(t, "topology", "--must-gather", file), cmp.AllowUnexported(output{})); diff != "" {
		t.Errorf("folder and archive (-folder +archive):\n%s", diff)
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "kubectl-sno-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestMustGather(t *testing.T) {
	const ic = "namespaces/openshift-ingress-operator/operator.openshift.io/ingresscontrollers/default.yaml"
	notGzip := filepath.Join(t.TempDir(), "notes.tar.gz")
	broken, lacking, without := t.TempDir(), t.TempDir(), t.TempDir()
	for _, err := range []error{
		os.CopyFS(broken, os.DirFS(gathered)), os.CopyFS(lacking, os.DirFS(gathered)), os.CopyFS(without, os.DirFS(gathered)),
		os.WriteFile(notGzip, []byte("hello"), 0o600),
		os.WriteFile(filepath.Join(broken, ic), []byte("apiVersion: [\n"), 0o600),
		os.RemoveAll(filepath.Join(lacking, "namespaces/openshift-console")),
		os.RemoveAll(filepath.Join(without, "cluster-scoped-resources/config.openshift.io/infrastructures")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const missing = "not in the must-gather: namespaces/openshift-console/apps/deployments/downloads.yaml"
	const plan, from = "plan --must-gather ", " --must-gather "
	testCalls(t, map[string]call{
		"corrupt file":       {plan + broken, 3, "approver", ic},
		"missing folder":     {plan + lacking, 3, "ingresscontroller.operator.openshift.io/default", missing},
		"partial diff":       {"diff" + from + lacking, 3, "+++ merged/ingresscontroller", "incomplete"},
		"no infrastructure":  {"topology" + from + without, 1, "", "infrastructures.config.openshift.io/cluster does not exist"},
		"no must-gather":     {plan + t.TempDir(), 1, "", "not a must-gather"},
		"missing file":       {plan + "/does/not/exist", 1, "", "no such file"},
		"no archive":         {plan + notGzip, 1, "", "neither a folder nor a readable .tar.gz"},
		"path traversal":     {plan + pack(t, "../../namespaces/evil.yaml"), 1, "", "evil.yaml"},
		"both":               {plan + gathered + " --context x", 1, "", "remove --context"},
		"would call members": {plan + gathered + " --etcd-endpoints http://localhost:1", 1, "", "remove --etcd-endpoints"},
		"diff of none":       {"diff" + from + t.TempDir(), 2, "", "not a must-gather"},
		"a kind that is read whole": {plan + "../machineconfig/decision/testdata/decide/one-node-in-force/input --modules machineconfig", 3,
			"kubeletconfig.machineconfiguration.openshift.io/sno-graceful-shutdown|in force", "incomplete"},
	})
}
