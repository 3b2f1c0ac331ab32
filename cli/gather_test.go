package cli_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/patch/patchtest"
)

const gathered = "testdata/gather/sno-with-workers/input"

// What each verb says about a must-gather.
func TestGolden(t *testing.T) {
	patchtest.Golden(t, "testdata/gather", func(t *testing.T, _ fs.FS) map[string]string {
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
				t.Errorf("%v ends with %d, want %d, and says\n%s", args, is.code, wantCode, is.err)
			}
			got[name] = trimmed(is.out)
		}
		return got
	})
}

// trimmed takes off the blanks with which a table ends its lines, which no editor leaves alone.
func trimmed(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// pack writes a .tar.gz of the folder, below the folders that people and must-gather put above it, and of the other files, empty.
func pack(t *testing.T, folder string, others ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "must-gather.tar.gz")
	made, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	zipped := gzip.NewWriter(made)
	packed := tar.NewWriter(zipped)
	put := func(name string, text []byte) error {
		if err := packed.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		_, err := packed.Write(text)
		return err
	}
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		return put("must-gather.local.1/quay-io-openshift/"+filepath.ToSlash(below), text)
	})
	for _, name := range others {
		err = errors.Join(err, put(name, nil))
	}
	if err := errors.Join(err, packed.Close(), zipped.Close(), made.Close()); err != nil {
		t.Fatal(err)
	}
	return file
}

// A packed must-gather says what its folder says; logs are not even unpacked.
func TestArchive(t *testing.T) {
	want := run(t, "topology", "--must-gather", gathered)
	file := pack(t, gathered, "must-gather.local.1/quay-io-openshift/namespaces/x/core/pods/p/logs/current.log")
	if diff := cmp.Diff(want, run(t, "topology", "--must-gather", file), cmp.AllowUnexported(said{})); diff != "" {
		t.Errorf("folder and archive (-folder +archive):\n%s", diff)
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "kubectl-sno-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// copied is the must-gather in a folder that the test may damage.
func copied(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(gathered)); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestBadMustGather(t *testing.T) {
	const ic = "namespaces/openshift-ingress-operator/operator.openshift.io/ingresscontrollers/default.yaml"
	broken, lacking, without := copied(t), copied(t), copied(t)
	for _, err := range []error{
		os.WriteFile(filepath.Join(broken, ic), []byte("apiVersion: [\n"), 0o600),
		os.RemoveAll(filepath.Join(lacking, "namespaces/openshift-console")),
		os.RemoveAll(filepath.Join(without, "cluster-scoped-resources/config.openshift.io/infrastructures")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	notGzip := filepath.Join(t.TempDir(), "notes.tar.gz")
	if err := os.WriteFile(notGzip, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args     []string
		code     int
		out, err string
	}{
		"corrupt file": {[]string{"plan", "--must-gather", broken}, 3, "approver", ic},
		"missing folder": {[]string{"plan", "--must-gather", lacking}, 3, "ingresscontroller.operator.openshift.io/default",
			"not in the must-gather: namespaces/openshift-console/apps/deployments/downloads.yaml"},
		"partial diff":       {[]string{"diff", "--must-gather", lacking}, 3, "+++ merged/ingresscontroller", "not whole"},
		"no infrastructure":  {[]string{"topology", "--must-gather", without}, 1, "", "nothing says what kind of cluster this is"},
		"no must-gather":     {[]string{"plan", "--must-gather", t.TempDir()}, 1, "", "not a must-gather"},
		"no such file":       {[]string{"plan", "--must-gather", "/does/not/exist"}, 1, "", "no such file"},
		"no archive":         {[]string{"plan", "--must-gather", notGzip}, 1, "", "neither a folder nor a readable .tar.gz"},
		"leads out":          {[]string{"plan", "--must-gather", pack(t, gathered, "../../namespaces/evil.yaml")}, 1, "", "evil.yaml"},
		"both":               {[]string{"plan", "--must-gather", gathered, "--context", "x"}, 1, "", "--context makes no sense"},
		"would call members": {[]string{"plan", "--must-gather", gathered, "--etcd-endpoints", "http://localhost:1"}, 1, "", "--etcd-endpoints makes no sense"},
		"diff of none":       {[]string{"diff", "--must-gather", t.TempDir()}, 2, "", "not a must-gather"},
	} {
		t.Run(name, func(t *testing.T) {
			is := run(t, test.args...)
			if is.code != test.code || !strings.Contains(is.out, test.out) || !strings.Contains(is.err, test.err) || (test.out == "" && is.out != "") {
				t.Errorf("code %d, want %d, with %q on standard error and %q on standard output; got\n%s\n%s", is.code, test.code, test.err, test.out, is.err, is.out)
			}
		})
	}
}

// What a module has of objects that it finds by looking through all of a kind is in the plan too.
func TestFieldsOfAnyObject(t *testing.T) {
	is := run(t, "plan", "--modules", "machineconfig", "--must-gather", "../machineconfig/testdata/decide/one-node-in-force/input")
	if !strings.Contains(is.out, "kubeletconfig.machineconfiguration.openshift.io/sno-graceful-shutdown") || !strings.Contains(is.out, "in force") {
		t.Errorf("the plan is\n%s%s", is.out, is.err)
	}
}
