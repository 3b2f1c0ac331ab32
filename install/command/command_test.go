// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kdomanski/iso9660"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"

	"github.com/solonode/sno/install/command"
	"github.com/solonode/sno/install/internal/apiserver"
	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/iso"
	"github.com/solonode/sno/install/phase"
)

func run(ctx context.Context, arguments ...string) (code int, out, errs string) {
	var stdout, stderr bytes.Buffer
	code = command.Main(ctx, arguments, &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// succeeds runs a command that has to succeed.
func succeeds(t *testing.T, arguments ...string) (out, errs string) {
	t.Helper()
	code, out, errs := run(t.Context(), arguments...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	return out, errs
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	fixture.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func authority(t *testing.T) string {
	t.Helper()
	bundle, _, err := cert.GenerateSelfSignedCertKey("machine-config-server", nil, nil)
	fixture.NoError(t, err)
	return string(bundle)
}

// The worker's config points to the cluster and trusts its CA. The end of the CA is printed (R-WRK-1).
func TestWorker(t *testing.T) {
	ca, dir := file(t, "ca.crt", authority(t)), t.TempDir()
	out, errs := succeeds(t, "create", "worker-ignition", "--dir", dir, "--host", "2001:db8::5", "--ca", ca)
	fixture.Equal(t, "errors", "", errs)
	if year := time.Now().AddDate(1, 0, 0).Format("2006-"); !strings.Contains(out, "ends at "+year) || !strings.Contains(out, "in 364 days") && !strings.Contains(out, "in 365 days") {
		t.Errorf("output %s", out)
	}
	text := fixture.Must(os.ReadFile(filepath.Join(dir, "worker.ign")))
	var config struct {
		Ignition struct {
			Config struct{ Merge []struct{ Source string } }
		}
	}
	if err := json.Unmarshal(text, &config); err != nil || config.Ignition.Config.Merge[0].Source != "https://[2001:db8::5]:22623/config/worker" {
		t.Errorf("%v: %s", err, text)
	}
}

func liveISO(t *testing.T) string {
	t.Helper()
	w := fixture.Must(iso9660.NewWriter())
	defer w.Cleanup() //nolint:errcheck // of the test
	fixture.NoError(t, w.AddFile(bytes.NewReader(make([]byte, 256<<10)), "images/ignition.img"))
	var image bytes.Buffer
	fixture.NoError(t, w.WriteTo(&image, "live"))
	return file(t, "live.iso", image.String())
}

func TestEmbed(t *testing.T) {
	const config = `{"ignition":{"version":"3.2.0"}}`
	out := filepath.Join(t.TempDir(), "out.iso")
	succeeds(t, "embed", "--iso", liveISO(t), "--ignition", file(t, "config.ign", config), "--out", out)
	if got, err := iso.Read(out); err != nil || string(got) != config {
		t.Errorf("read back: %q, %v", got, err)
	}
}

// Bad input is reported in one line with advice, and nothing is written.
func TestBadInput(t *testing.T) {
	ended := &pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"no host":            {[]string{"create", "worker-ignition"}, "--host and --ca are needed; see sno-install --help"},
		"host":               {[]string{"create", "worker-ignition", "--host", "https://api-int", "--ca", "x"}, `--host "https://api-int"`},
		"no CA":              {[]string{"create", "worker-ignition", "--host", "a.b", "--ca", "none.crt"}, "none.crt: no such file"},
		"invalid CA":         {[]string{"create", "worker-ignition", "--host", "a.b", "--ca", file(t, "ca.crt", string(pem.EncodeToMemory(ended)))}, "nothing was done"},
		"unknown flag":       {[]string{"start", "--speed"}, "unknown flag: --speed; see sno-install --help"},
		"unknown command":    {[]string{"create", "everything"}, `unknown command "everything"`},
		"no kubeconfig":      {[]string{"start", "--manifests", "x"}, "--kubeconfig, and --rendered or --manifests are needed"},
		"kubeconfig":         {[]string{"start", "--manifests", ".", "--kubeconfig", "none"}, "--kubeconfig: stat none"},
		"no ISO":             {[]string{"embed"}, "--iso, --ignition and --out are needed"},
		"ISO":                {[]string{"embed", "--iso", file(t, "a.iso", "x"), "--out", filepath.Join(t.TempDir(), "o"), "--ignition", file(t, "a.ign", `{"ignition":{"version":"3.2.0"}}`)}, "a.iso: not a readable ISO 9660 image"},
		"config of spec 2":   {[]string{"embed", "--iso", "x", "--out", "y", "--ignition", file(t, "a.ign", `{"ignition":{"version":"2.2.0"}}`)}, "use one from 3.0.0 to 3.6.0"},
		"no data, no copy":   {[]string{"restore-etcd", "--root", t.TempDir(), "--status-dir", t.TempDir()}, "an empty etcd would be another cluster"},
		"folder of manifest": {[]string{"start", "--manifests", "/none", "--kubeconfig", file(t, "k", "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: https://localhost:1}}]\ncontexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n")}, "there is no folder /none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			code, out, errs := run(t.Context(), test.arguments...)
			if code != phase.ExitInput || !strings.Contains(errs, test.want) || out != "" {
				t.Errorf("exit code %d, want %d; output %s%s", code, phase.ExitInput, out, errs)
			}
			if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
				t.Errorf("written: %v, %v", left, err)
			}
		})
	}
}

// A refused manifest fails the command, the others are applied, and the same command continues (R-BIP-13, U-INS-10).
func TestStart(t *testing.T) {
	environment := apiserver.Start(t)
	kubeconfig := file(t, "kubeconfig", string(environment.KubeConfig))
	folder, status := t.TempDir(), t.TempDir()
	put := func(name, text string) {
		fixture.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	put("10-object.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: site}\ndata: {a: b}\n")
	put("20-namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: site}\n")
	put("30-refused.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: site}\nspec: {ports: [{port: 99999}]}\n")
	arguments := []string{"start", "--kubeconfig", kubeconfig, "--manifests", folder, "--status-dir", status, "--required-pods", "", "--limit", "1m"}
	code, _, errs := run(t.Context(), arguments...)
	if code != phase.ExitInput || !strings.Contains(errs, "30-refused.yaml") || !strings.Contains(errs, "spec.ports[0].port") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	client := fixture.Must(kubernetes.NewForConfig(environment.Config))
	if _, err := client.CoreV1().ConfigMaps("site").Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Errorf("the others were not applied: %v", err)
	}
	put("30-refused.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: site}\nspec: {ports: [{port: 80}]}\n")
	out, _ := succeeds(t, arguments...)
	fixture.Equal(t, "output", "3 objects and statuses are applied\n", out)
	text, err := os.ReadFile(filepath.Join(status, "start.json"))
	var s phase.Status
	if err := errors.Join(err, json.Unmarshal(text, &s)); err != nil || s.State != phase.Done || s.Phases[0].Name != "apply-manifests" {
		t.Errorf("status %s, %v", text, err)
	}
}

func TestVersion(t *testing.T) {
	if out, _ := succeeds(t, "--version"); !strings.HasPrefix(out, "sno-install version ") {
		t.Error(out)
	}
}

// TestManPages also fails if a page depends on the time: archives of a second build would differ.
func TestManPages(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "0")
	folder := t.TempDir()
	succeeds(t, "man", folder)
	for _, name := range []string{"sno-install.1", "sno-install-rotate.1"} {
		if page, err := os.ReadFile(filepath.Join(folder, name)); err != nil || !bytes.Contains(page, []byte(".SH OPTIONS")) {
			t.Errorf("%s: %v\n%s", name, err, page)
		}
	}
	pages, err := filepath.Glob(filepath.Join(folder, "*.1"))
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	for _, name := range pages {
		page := fixture.Must(os.ReadFile(name))
		if today := time.Now().UTC().Format("20060102"); bytes.Contains(page, []byte(today)) {
			t.Errorf("%s contains the time %s:\n%s", name, today, page)
		}
	}
}
