// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/rotate"

	"github.com/solonode/sno/install/controlplane"
	"github.com/solonode/sno/install/controlplane/controlplanetest"
	"github.com/solonode/sno/install/ignition"
	"github.com/solonode/sno/install/ignition/ignitiontest"
	"github.com/solonode/sno/install/installconfig"
	"github.com/solonode/sno/install/internal/apiserver"
	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
	"github.com/solonode/sno/install/snapshot"
)

const (
	original  = `{"ignition":{"version":"3.2.0"},"passwd":{"users":[{"name":"core","sshAuthorizedKeys":["ssh-ed25519 A"]}]}}`
	addedFile = `{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/site.conf","contents":{"source":"data:,site"},"mode":384}]}}`
)

type machine struct {
	root, disk string
	Options
	fail   string
	output bytes.Buffer
}

var configFiles = sync.OnceValues(func() ([]files.File, error) {
	user := files.File{Path: "site.yaml", Mode: 0o600, Content: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: site, namespace: default}\ndata: {a: b}\n")}
	all, err := controlplanetest.ConfigFiles(context.Background(), installconfig.SingleNode, node.LiveSettings, node.LiveManifests, user)
	return append(all, files.File{Path: node.UserMasterIgnition, Mode: 0o600, Content: []byte(original)}, files.File{Path: node.NodeAdditions, Mode: 0o600, Content: []byte(addedFile)}), err
})

func newMachine(t *testing.T) *machine {
	t.Helper()
	all := fixture.Must(configFiles())
	m := &machine{root: t.TempDir()}
	fixture.Must(rotate.WriteChanged(m.root, all))
	bin := t.TempDir()
	m.disk, m.fail = filepath.Join(bin, "disk"), filepath.Join(bin, "fail")
	fixture.Script(t, bin, "coreos-installer", `set -e
if [ -e "`+m.fail+`" ]; then echo "no such disk" >&2; exit 1; fi
echo "$@" >"`+m.disk+`.arguments"
cp "$3" "`+m.disk+`"`)
	fixture.Script(t, bin, "restart", `echo restarted >>"`+m.disk+`.restarts"`)
	m.Options = Options{
		Root: m.root, Installer: filepath.Join(bin, "coreos-installer"), Restart: []string{filepath.Join(bin, "restart")}, Output: &m.output,
		Program: filepath.Join(bin, "restart"), Interval: 20 * time.Millisecond, Endpoints: Endpoints{EtcdPort: "localhost:1", Etcd: "http://localhost:1"},
		Host: func() (controlplane.Host, error) {
			return controlplane.Host{Name: "master0", Interfaces: []controlplane.Interface{{Name: "eno1", Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.10/24")}}}}, nil
		},
	}
	m.edit(t, func(s *node.Settings) {
		s.InstallationDisk, s.KernelArguments, s.InstallerArguments = "/dev/disk/by-id/wwn-0x1", []string{"nosmt"}, []string{"--copy-network"}
		s.MasterIgnition = "/" + node.UserMasterIgnition
	})
	return m
}

// kubelet simulates the kubelet of the live system: an API server, an etcd and two listeners run until their manifests
// are removed. They are started before, because the phases need their addresses.
func (m *machine) kubelet(t *testing.T) {
	t.Helper()
	environment := apiserver.Start(t)
	plane := &environment.ControlPlane
	stops := map[string]func() error{"kube-apiserver-pod.yaml": plane.GetAPIServer().Stop, "etcd-pod.yaml": plane.Etcd.Stop}
	m.Endpoints.Etcd, m.Endpoints.EtcdPort = "http://"+plane.Etcd.URL.Host, plane.Etcd.URL.Host
	m.Endpoints.Ports = []string{strings.Trim(strings.TrimPrefix(environment.Config.Host, "https:"), "/")}
	for _, name := range node.StaticPods[2:] {
		listener := fixture.Must(net.Listen("tcp", "127.0.0.1:0"))
		m.Endpoints.Ports = append(m.Endpoints.Ports, listener.Addr().String())
		stops[name] = listener.Close
	}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		seen := map[string]bool{}
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for {
			for name, stop := range stops {
				_, err := os.Stat(filepath.Join(m.root, node.ManifestDir, name))
				switch {
				case err == nil && !seen[name]:
					seen[name] = true
					if name == "kube-apiserver-pod.yaml" {
						_ = os.WriteFile(filepath.Join(m.root, node.Rendered+"/"+controlplane.Kubeconfig), environment.KubeConfig, 0o600)
					}
				case errors.Is(err, fs.ErrNotExist) && seen[name]:
					delete(stops, name)
					_ = stop()
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		done.Wait()
		for _, stop := range stops {
			_ = stop()
		}
	})
}

// run runs the phases and cancels the run when the named phase is done; "" runs all. It returns the phases that were
// run.
func (m *machine) run(t *testing.T, until string) ([]string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	began := map[string]bool{}
	var order []string
	err := phase.Run(ctx, Phases(m.Options), phase.Options{Command: "bootstrap-in-place", StatusFile: filepath.Join(m.root, node.StatusDir, "b.json"), Report: func(s phase.Status) {
		for _, p := range s.Phases {
			if p.State == phase.Running && !began[p.Name] {
				began[p.Name] = true
				order = append(order, p.Name)
			}
			if p.Name == until && p.State == phase.Done && began[p.Name] {
				cancel()
			}
		}
	}})
	return order, err
}

func (m *machine) edit(t *testing.T, change func(*node.Settings)) {
	t.Helper()
	s := fixture.Must(node.Read(filepath.Join(m.root, node.LiveSettings)))
	change(s)
	text := fixture.Must(s.Encode())
	fixture.Put(t, m.root, node.LiveSettings, string(text))
}

// A machine is installed although the run is interrupted after every phase, a manifest is refused, the snapshot is
// damaged, and writing the disk fails at first. The disk gets all that the node needs, and only root reads its keys
// (R-BIP-1, R-BIP-6, R-BIP-7, R-BIP-10, R-BIP-11, R-BIP-12, R-BIP-15, U-INS-12).
func TestInstall(t *testing.T) {
	if testing.Short() {
		t.Skip("runs all phases several times, with an API server of its own")
	}
	m := newMachine(t)
	m.kubelet(t)
	interrupt := func(names ...string) {
		t.Helper()
		for _, name := range names {
			if _, err := m.run(t, name); !errors.Is(err, context.Canceled) {
				t.Fatalf("interrupted after %s: %v", name, err)
			}
		}
	}
	interrupt("preflight", "release-payload")
	m.rendered(t)
	interrupt("static-pods", "api")
	// A person adds a manifest that the API server refuses, and corrects it.
	refused := node.Rendered + "/manifests/9999-refused.yaml"
	fixture.Put(t, m.root, refused, "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: default}\nspec: {ports: [{port: 99999}]}\n")
	_, err := m.run(t, "")
	if !errors.Is(err, phase.ErrInput) || !strings.Contains(err.Error(), "9999-refused.yaml: Service default/a") || !strings.Contains(err.Error(), "spec.ports[0].port") {
		t.Fatalf("a refused manifest: %v", err)
	}
	fixture.Put(t, m.root, refused, "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: default}\nspec: {ports: [{port: 80}]}\n")
	interrupt("apply-manifests", "master-ignition", "log-bundle", "stop-control-plane", "snapshot")
	fixture.NoError(t, os.WriteFile(m.fail, nil, 0o600))
	snapshotFile := filepath.Join(m.root, node.LiveSnapshot)
	fixture.NoError(t, os.Truncate(snapshotFile, 1000))
	order, err := m.run(t, "")
	if !errors.Is(err, errProgram) || phase.ExitCode(err) != phase.ExitFailed || !strings.Contains(m.output.String(), "no such disk") || !strings.HasSuffix(err.Error(), ": no such disk") {
		t.Fatalf("no disk: %v\n%s", err, m.output.String())
	}
	fixture.Equal(t, "after a damaged snapshot", []string{"stop-control-plane", "snapshot", "stop-etcd", "enrich", "write-disk"}, order)
	first, err := os.ReadFile(filepath.Join(m.root, node.MasterIgnition))
	fixture.NoError(t, err)
	fixture.NoError(t, os.Remove(m.fail))
	if order, err = m.run(t, "write-disk"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	fixture.Equal(t, "with a disk", []string{"stop-etcd", "enrich", "write-disk"}, order)
	if order, err = m.run(t, ""); err != nil || !slices.Equal(order, []string{"reboot"}) {
		t.Fatalf("%v, %v", order, err)
	}
	m.written(t, first)
}

func (m *machine) written(t *testing.T, first []byte) {
	t.Helper()
	text, err := os.ReadFile(m.disk)
	if err != nil || !bytes.Equal(text, first) {
		t.Fatalf("the config on the disk has changed: %v", err)
	}
	arguments := fixture.Must(os.ReadFile(m.disk + ".arguments"))
	want := fmt.Sprintf("install --ignition-file %s --append-karg nosmt --copy-network /dev/disk/by-id/wwn-0x1\n", filepath.Join(m.root, node.MasterIgnition))
	fixture.Equal(t, "arguments", want, string(arguments))
	ignitiontest.Validate(t, text)
	if os.Geteuid() != 0 {
		t.Skip("Ignition's engine must run as root")
	}
	root := ignitiontest.NewRoot(t)
	fixture.NoError(t, ignitiontest.Apply(t, root, text))
	// The first revision is the only one, since all its input exists from the beginning (R-BIP-14).
	revisions := map[string]bool{}
	for name := range ignitiontest.Tree(t, root) {
		if rest, ok := strings.CutPrefix(name, "/"+node.ResourceDir+"/kube-apiserver-pod-"); ok {
			revision, _, _ := strings.Cut(rest, "/")
			revisions[revision] = true
		}
	}
	fixture.Equal(t, "revisions of kube-apiserver", map[string]bool{"1": true}, revisions)
	fixture.NoError(t, Restore(t.Context(), root))
	if done, err := snapshot.HasMember(filepath.Join(root, node.EtcdData)); err != nil || !done {
		t.Errorf("etcd has no data: %v", err)
	}
	data, err := os.ReadFile(filepath.Join(root, node.Snapshot))
	if err != nil || !bytes.Contains(data, []byte("/registry/configmaps/default/site")) {
		t.Errorf("the snapshot lacks what was applied: %v", err)
	}
}

// A config that cannot be used ends the run before anything is stopped or written. After a correction the same command
// continues.
func TestInputOfPhases(t *testing.T) {
	m := newMachine(t)
	m.rendered(t)
	fixture.Put(t, m.root, applied, "")
	for _, version := range []string{"2.2.0", "3.9.0"} {
		fixture.Put(t, m.root, node.UserMasterIgnition, `{"ignition":{"version":"`+version+`"}}`)
		_, err := m.run(t, "")
		fixture.Fails(t, version, err, ignition.ErrVersion, phase.ErrInput, "/given-master.ign: ignition.version")
	}
	fixture.Put(t, m.root, node.UserMasterIgnition, original)
	if _, err := m.run(t, "master-ignition"); !errors.Is(err, context.Canceled) {
		t.Errorf("with a config that can be used: %v", err)
	}
	fixture.Absent(t, m.disk)
}

// output has the rendered files and the settings after phase render, relative to the root of the machine.
var output []files.File

func (m *machine) rendered(t *testing.T) {
	t.Helper()
	if output != nil {
		fixture.Must(rotate.WriteChanged(m.root, output))
		return
	}
	if _, err := m.run(t, "render"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	fixture.NoError(t, filepath.WalkDir(filepath.Join(m.root, node.Rendered), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		f := files.File{Mode: info.Mode().Perm()}
		if f.Path, err = filepath.Rel(m.root, name); err == nil {
			f.Content, err = os.ReadFile(name)
		}
		output = append(output, f)
		return err
	}))
	settings := fixture.Must(os.ReadFile(filepath.Join(m.root, node.LiveSettings)))
	output = append(output, files.File{Path: node.LiveSettings, Mode: 0o600, Content: settings})
}

// A server without a config, or that interrupts the answer, is retried; the phase reports it and ends at its limit
// (U-INS-6).
func TestFetch(t *testing.T) {
	m := newMachine(t)
	answers := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch answers++; answers {
		case 1:
			http.Error(w, "not yet", http.StatusInternalServerError)
			return
		case 2:
			w.Header().Set("Content-Length", strconv.Itoa(len(original)))
			_, _ = w.Write([]byte(`{"ignition":{"version":"3.2.0"}`))
			panic(http.ErrAbortHandler)
		}
		if got := r.Header.Get("Accept"); got != "application/vnd.coreos.ignition+json;version=3.2.0" {
			t.Errorf("Accept: %s", got)
		}
		_, _ = w.Write([]byte(original))
	}))
	t.Cleanup(server.Close)
	m.edit(t, func(s *node.Settings) { s.MasterIgnition = server.URL })
	l := newLive(m.Options)
	if err := l.fetchOriginal(t.Context(), nil); err != nil || answers != 3 {
		t.Errorf("%d answers, %v", answers, err)
	}
	if done, err := l.hasOriginal(t.Context()); !done || err != nil {
		t.Errorf("done %v, %v", done, err)
	}
	server.Close()
	limited := phase.Phase{Name: "master-ignition", Limit: 100 * time.Millisecond, Run: l.fetchOriginal}
	err := phase.Run(t.Context(), []phase.Phase{limited}, phase.Options{})
	fixture.Fails(t, "no network", err, phase.ErrLimit, server.URL, "connection refused")
}

// A config whose server nothing proves is not read (https, a sum, this machine), also not after a redirect.
func TestFetchFromAProvenServerOnly(t *testing.T) {
	reached := map[string]int{}
	config := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached[r.Host]++
		_, _ = w.Write([]byte(original))
	})
	secure := httptest.NewTLSServer(config)
	t.Cleanup(secure.Close)
	redirect := func(to string) string {
		s := httptest.NewTLSServer(http.RedirectHandler(to, http.StatusFound))
		t.Cleanup(s.Close)
		return s.URL
	}
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})) // of every httptest server
	sum := fmt.Sprintf("%x", sha512.Sum512([]byte(original)))
	const elsewhere = "http://192.0.2.5/config/master"
	for name, test := range map[string]struct {
		from, sum, ca, want string
	}{
		"https":                       {secure.URL, "", ca, ""},
		"https with a sum":            {secure.URL, sum, ca, ""},
		"https of an unknown CA":      {secure.URL, "", "", "certificate signed by unknown authority"},
		"another content":             {secure.URL, strings.Repeat("0", 128), ca, "answers with another content"},
		"no certificate in the CA":    {secure.URL, "", "x", "masterIgnitionCA has no certificate"},
		"http":                        {"http://me:secret@192.0.2.5/config/master", "", "", "http://me:xxxxx@192.0.2.5/config/master: use https"},
		"https, redirected":           {redirect(secure.URL), "", ca, ""},
		"https, redirected to http":   {redirect(elsewhere), "", ca, elsewhere + ": use https"},
		"https, redirected for ever":  {redirect("/"), "", ca, "more than 5 redirects"},
		"password, and not reachable": {"https://me:secret@127.0.0.1:1/", "", ca, "https://me:xxxxx@127.0.0.1:1/"},
	} {
		m := newMachine(t)
		m.edit(t, func(s *node.Settings) {
			s.MasterIgnition, s.MasterIgnitionSHA512, s.MasterIgnitionCA = test.from, test.sum, test.ca
		})
		l := newLive(m.Options)
		limited := phase.Phase{Name: "master-ignition", Limit: time.Second, Run: l.fetchOriginal}
		err := phase.Run(t.Context(), []phase.Phase{limited}, phase.Options{})
		done, _ := l.hasOriginal(t.Context())
		if done != (test.want == "") || test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: error %v, want %q; has it %t", name, err, test.want, done)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error has the password: %v", name, err)
		}
	}
}

// A failed check of the machine is retried until the limit, and is an input error then.
func TestPreflight(t *testing.T) {
	m := newMachine(t)
	errDisk := fmt.Errorf("no disk: %w", phase.ErrInput)
	checks := 0
	m.Check = func(context.Context, *node.Settings) error {
		if checks++; checks < 3 {
			return errDisk
		}
		return nil
	}
	l := newLive(m.Options)
	if err := l.preflight(t.Context(), nil); err != nil || checks != 3 {
		t.Errorf("%d checks, %v", checks, err)
	}
	l.o.Check = func(context.Context, *node.Settings) error { return errDisk }
	err := phase.Run(t.Context(), []phase.Phase{{Name: "preflight", Limit: 200 * time.Millisecond, Run: l.preflight}}, phase.Options{})
	if !errors.Is(err, errDisk) || !errors.Is(err, phase.ErrLimit) || phase.ExitCode(err) != phase.ExitInput || !strings.Contains(err.Error(), "waiting for the machine: no disk") {
		t.Errorf("error %v", err)
	}
	fixture.Put(t, m.root, node.LiveSettings, "profile: [")
	fixture.Fails(t, "settings that cannot be read", l.preflight(t.Context(), nil), phase.ErrInput, node.ErrSettings)
}
