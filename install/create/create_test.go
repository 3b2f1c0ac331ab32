// SPDX-License-Identifier: Apache-2.0

package create_test

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/inputs"

	"github.com/solonode/sno/install/create"
	"github.com/solonode/sno/install/credentials"
	"github.com/solonode/sno/install/ignition"
	"github.com/solonode/sno/install/ignition/ignitiontest"
	"github.com/solonode/sno/install/installconfig"
	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/manifests"
	"github.com/solonode/sno/install/network"
	"github.com/solonode/sno/install/node"
)

const nmstate = `
interfaces:
- {name: eno1, type: ethernet, state: up, ipv4: {enabled: true, dhcp: false, address: [{ip: 192.0.2.10, prefix-length: 24}]}}
`

// states are made once, because keys are slow to make.
var states = map[inputs.Profile]func() (*credentials.State, error){inputs.Kubernetes: newState(inputs.Kubernetes), inputs.OpenShift: newState(inputs.OpenShift)}

func newState(profile inputs.Profile) func() (*credentials.State, error) {
	return sync.OnceValues(func() (*credentials.State, error) {
		return credentials.New(context.Background(), credentials.Options{Profile: profile, Name: "sno", Domain: "sno.example.com", Validity: time.Hour, Now: time.Now()})
	})
}

func input(t testing.TB, purpose installconfig.Purpose, profile inputs.Profile) create.Input {
	t.Helper()
	const file = "../installconfig/testdata/install-config.yaml"
	text := fixture.Must(os.ReadFile(file))
	c, _, err := installconfig.Read(file, text, installconfig.Options{Purpose: purpose})
	fixture.NoError(t, err)
	state := fixture.Must(states[profile]())
	machine := fixture.Must(network.Parse("network.yaml", []byte(nmstate)))
	return create.Input{
		Config: c, Network: machine, State: state,
		Manifests: []files.File{{Path: "manifests/site.yaml", Mode: 0o600, Content: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: site}\n")}},
		Extra: &create.Folder{Name: "extra", FS: fstest.MapFS{
			"units/site.service":         {Data: []byte("[Service]\nExecStart=/usr/bin/true\n[Install]\nWantedBy=multi-user.target\n"), Mode: 0o644},
			"files/etc/site.conf":        {Data: []byte("a"), Mode: 0o640},
			"kernel-arguments/site.conf": {Data: []byte("nosmt\n"), Mode: 0o644},
		}},
		Settings: node.Settings{
			Profile: string(profile), KubernetesVersion: "1.35.2", ReleaseImage: "registry.example.com/release@sha256:0", Validity: "1h",
			Created: "2026-11-25T08:00:00Z", ProgramInImage: true,
		},
	}
}

// The live system has what the bootstrap phase needs. The installed node gets the user's additions, but nothing of the
// live system's (R-BIP-4, R-BIP-8, R-BIP-24).
func TestSingleNode(t *testing.T) {
	const keyfile, mirrors, pullSecret = "/etc/NetworkManager/system-connections/eno1.nmconnection", "/etc/containers/registries.conf.d/50-sno-install-mirrors.conf", "/" + node.PullSecret
	for _, profile := range []inputs.Profile{inputs.Kubernetes, inputs.OpenShift} {
		t.Run(string(profile), func(t *testing.T) {
			in := input(t, installconfig.SingleNode, profile)
			if profile == inputs.OpenShift {
				in.Settings.MasterIgnition = "http://localhost:22624/config/master"
			}
			in.ExtraLive = &create.Folder{Name: "live", FS: fstest.MapFS{"files/etc/hosts": {Data: []byte("192.0.2.10 api.sno.example.com\n"), Mode: 0o644}}}
			text := fixture.Must(create.SingleNode(in))
			ignitiontest.Validate(t, text)
			parsed, err := ignition.Parse("live", text)
			if err != nil || parsed.Version != "3.2.0" {
				t.Errorf("version %s, %v", parsed.Version, err)
			}
			if os.Geteuid() != 0 {
				t.Skip("Ignition's engine must run as root")
			}
			root := ignitiontest.NewRoot(t)
			fixture.NoError(t, ignitiontest.Apply(t, root, text))
			settings := fixture.Must(node.Read(filepath.Join(root, node.LiveSettings)))
			want := in.Settings
			want.ClusterName, want.BaseDomain, want.InstallationDisk, want.KernelArguments = "sno", "example.com", "/dev/disk/by-id/wwn-0x5000c500a0b1c2d3", []string{"nosmt"}
			want.StatusCertificate, want.StatusKey = string(in.State.StatusCert), string(in.State.StatusKey)
			want.MachineNetworks = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
			if profile == inputs.Kubernetes {
				want.MasterIgnition = "/" + node.UserMasterIgnition
			}
			fixture.Equal(t, "settings", want, *settings, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }))
			for name, entry := range ignitiontest.Tree(t, root) {
				if strings.HasPrefix(name, "/"+node.LiveDir) && entry.Mode.Perm()&0o077 != 0 {
					t.Errorf("%s has mode %o", name, entry.Mode.Perm())
				}
			}
			added := fixture.Must(os.ReadFile(filepath.Join(root, node.NodeAdditions)))
			onNode, _ := ignitiontest.Read(t, added)
			onLive, _ := ignitiontest.Read(t, text)
			operators := profile == inputs.OpenShift
			if strings.Contains(string(text), "node-image.service") != operators {
				t.Error("only a release has a node image")
			}
			for name, want := range map[string]struct{ live, node bool }{
				keyfile: {true, true}, mirrors: {true, !operators}, pullSecret: {true, !operators}, "/etc/site.conf": {false, true}, "/etc/hosts": {true, false},
				"/" + node.LiveManifests + "/manifests_site.yaml": {true, false}, "/" + node.Program: {false, false},
			} {
				_, live := onLive[name]
				if _, node := onNode[name]; live != want.live || node != want.node {
					t.Errorf("%s: live %v, node %v, want %+v", name, live, node, want)
				}
			}
			cluster, err := inputs.Read(os.DirFS(filepath.Join(root, node.LiveManifests)), time.Now())
			if err == nil || cluster != nil || !strings.Contains(err.Error(), "no control-plane node") {
				t.Errorf("a render needs more than the node: %v", err)
			}
		})
	}
}

// The config of an all-in-one node has its kubelet and all keys; the machine makes the rest (R-AIO-1, R-AIO-4).
func TestAllInOne(t *testing.T) {
	in := input(t, installconfig.AllInOne, inputs.Kubernetes)
	text := fixture.Must(create.AllInOne(in))
	ignitiontest.Validate(t, text)
	parsed, err := ignition.Parse("aio", text)
	if err != nil || parsed.Version != "3.3.0" { // with a kernel argument
		t.Errorf("version %s, %v", parsed.Version, err)
	}
	entries, units := ignitiontest.Read(t, text)
	for name, want := range map[string]struct {
		mode fs.FileMode
		part string
	}{
		node.AllInOneSettings: {0o600, "clusterName: sno"}, node.AllInOneManifests + "/manifests_site.yaml": {0o600, "site"}, "etc/site.conf": {0o640, "a"},
		"etc/cni/net.d/10-sno.conflist": {0o644, `"subnet": "10.128.0.0/23"`}, "etc/kubernetes/kubelet.conf": {0o644, "serverTLSBootstrap: true"},
	} {
		if e := entries["/"+name]; e.Mode != want.mode || !strings.Contains(e.Content, want.part) {
			t.Errorf("%s: mode %o, %s", name, e.Mode, e.Content)
		}
	}
	if !strings.Contains(entries["/etc/kubernetes/kubelet.conf"].Content, "- 172.30.0.10\n") {
		t.Errorf("kubelet: %s", entries["/etc/kubernetes/kubelet.conf"].Content)
	}
	for _, unit := range []string{"aiokube.service", "kubelet.service", "sno-rotate.timer", "site.service"} {
		if units[unit] == "" {
			t.Errorf("%s is not enabled", unit)
		}
	}
	// The control plane is started once. Certificates are renewed also on a machine that was off (R-AIO-3, R-AIO-7).
	hasLines(t, units, "aiokube.service", "After=network-online.target kubelet.service\nConditionPathExists=!/var/lib/sno/installed", "ExecStart=/usr/bin/sno-install aiokube"+retried)
	if !strings.Contains(string(text), `ConditionPathExists=/var/lib/sno/installed\n\n[Service]\nType=oneshot\nRestart=on-failure\nRestartSec=5\nExecStart=/usr/bin/sno-install rotate\n`) {
		t.Error("sno-rotate.service lacks the condition or the command")
	}
	const enabled = "\n\n[Install]\nWantedBy=multi-user.target"
	hasLines(t, units, "sno-rotate-before-kubelet.service", "ConditionPathExists=/var/lib/sno/installed\nBefore=kubelet.service", "ExecStart=/usr/bin/sno-install rotate --before-kubelet"+enabled)
	hasLines(t, units, "etcd-remove-unformed.service", "ConditionPathExists=/var/lib/etcd/member\nConditionPathExists=!/var/lib/sno/installed\nBefore=kubelet.service",
		"ExecStart=/usr/bin/sno-install remove-unformed-etcd"+enabled)
}

func TestInvalid(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*create.Input)
		err    error
		want   string
	}{
		"program twice":          {func(in *create.Input) { in.Program.URL = "http://hub.example.com/p" }, create.ErrInput, "in the image, and has the URL"},
		"kernel arguments, live": {func(in *create.Input) { in.ExtraLive = in.Extra }, create.ErrLiveArguments, "extra: [nosmt]"},
		"a file of sno-install":  {func(in *create.Input) { in.ExtraLive = file(node.LiveSettings) }, ignition.ErrConflict, "/" + node.LiveSettings},
		"the network twice":      {func(in *create.Input) { in.Extra = file("etc/NetworkManager/system-connections/eno1.nmconnection") }, ignition.ErrConflict, "the network configuration"},
		"unit of sno-install":    {func(in *create.Input) { in.ExtraLive = file("etc/systemd/system/bootkube.service") }, ignition.ErrConflict, "unit bootkube.service"},
		"master config of spec 2": {func(in *create.Input) {
			in.MasterIgnition = &create.Source{Name: "m.ign", Text: []byte(`{"ignition":{"version":"2.2.0"}}`)}
		}, ignition.ErrVersion, "m.ign"},
		"user of the master config": {func(in *create.Input) {
			in.MasterIgnition = &create.Source{Name: "m.ign", Text: []byte(`{"ignition":{"version":"3.2.0"},"passwd":{"users":[{"name":"core","sshAuthorizedKeys":["ssh-ed25519 A"]}]}}`)}
		}, ignition.ErrConflict, "user core: defined by two sources: m.ign and install-config.yaml: sshKey"},
		"master config twice": {func(in *create.Input) {
			in.MasterIgnition, in.Settings.MasterIgnition = &create.Source{Name: "m.ign"}, "http://localhost/m"
		}, create.ErrInput, "m.ign and http://localhost/m"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, installconfig.SingleNode, inputs.Kubernetes)
			test.change(&in)
			text, err := create.SingleNode(in)
			if err == nil || test.err != nil && !errors.Is(err, test.err) || !strings.Contains(err.Error(), test.want) || text != nil {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
	in := input(t, installconfig.AllInOne, inputs.OpenShift)
	_, err := create.AllInOne(in)
	fixture.Fails(t, "all-in-one with operators", err, create.ErrInput)
	in.Settings.Profile, in.ExtraLive = string(inputs.Kubernetes), in.Extra
	_, err = create.AllInOne(in)
	fixture.Fails(t, "all-in-one with a live system", err, create.ErrInput)
}

// All that is wrong is reported at once, and once.
func TestAllErrors(t *testing.T) {
	in := input(t, installconfig.SingleNode, inputs.Kubernetes)
	in.Settings.ProgramInImage, in.Config.FIPS = false, true
	in.Extra = &create.Folder{Name: "extra", FS: fstest.MapFS{
		"speed": {}, "files/etc/NetworkManager/system-connections/eno1.nmconnection": {Mode: 0o600}, "files/etc/kubernetes/kubelet.conf": {Mode: 0o644},
	}}
	in.ExtraLive = file("etc/systemd/system/bootkube.service")
	in.Manifests = append(in.Manifests, files.File{Path: "manifests/again.yaml", Content: in.Manifests[0].Content})
	_, err := create.SingleNode(in)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"--program or --program-in-image", "fips: true", "extra/speed", "additions to the installed node: ", "the live system: unit bootkube.service", "manifests/again.yaml",
	} {
		if strings.Count(err.Error(), want) != 1 {
			t.Errorf("%q is not once in:\n%v", want, err)
		}
	}
	in = input(t, installconfig.AllInOne, inputs.Kubernetes)
	in.Settings.ProgramInImage, in.Extra = false, file("etc/kubernetes/kubelet.conf")
	in.Extra.FS.(fstest.MapFS)["speed"] = &fstest.MapFile{} //nolint:forcetypeassert // see file
	_, err = create.AllInOne(in)
	for _, want := range []string{"--program or --program-in-image", "mine/speed", "/etc/kubernetes/kubelet.conf: defined by two sources"} {
		if err == nil || strings.Count(err.Error(), want) != 1 {
			t.Errorf("%q is not once in:\n%v", want, err)
		}
	}
}

const mirrorText = `[[registry]]
prefix = "registry.example.com/release"
location = "registry.example.com/release"
blocked = true
[[registry.mirror]]
location = "mirror.example.com:5000/release"
pull-from-mirror = "digest-only"
[[registry]]
prefix = "quay.example.com/more"
location = "quay.example.com/more"
[[registry.mirror]]
location = "a.example.com/more"
pull-from-mirror = "digest-only"
[[registry.mirror]]
location = "b.example.com/more"
pull-from-mirror = "digest-only"
`

// hasLines reports lines that a unit lacks.
func hasLines(t *testing.T, units map[string]string, name string, blocks ...string) {
	t.Helper()
	for _, lines := range blocks {
		if !strings.Contains(units[name], "\n"+lines+"\n") {
			t.Errorf("%s lacks %q:\n%s", name, lines, units[name])
		}
	}
}

const retried = "\nRestart=on-failure\nRestartSec=10\nRestartPreventExitStatus=2\n\n[Install]\nWantedBy=multi-user.target"

// The live system uses the site's mirrors, proxy and CAs, which no operator has configured yet (R-BIP-24), and verifies
// the program's sum.
func TestLiveFiles(t *testing.T) {
	in := input(t, installconfig.SingleNode, inputs.OpenShift)
	in.Settings.MasterIgnition, in.Settings.ProgramInImage = "http://localhost:22624/config/master", false
	in.Program = create.Program{URL: "http://hub.example.com/sno-install", SHA512: strings.Repeat("0", 128)}
	in.Config.AdditionalTrustBundle = "the site's CAs"
	in.Config.Proxy = &installconfig.Proxy{HTTPProxy: "http://user:p%20w@proxy.example.com:3128"}
	in.Config.ImageDigestSources = append(in.Config.ImageDigestSources, installconfig.ImageSource{Source: "quay.example.com/more", Mirrors: []string{"a.example.com/more", "b.example.com/more"}})
	text := fixture.Must(create.SingleNode(in))
	entries, units := ignitiontest.Read(t, text)
	hasLines(t, units, "bootkube.service", "After=network-online.target kubelet.service\nRequires=kubelet.service", "ExecStart=/usr/local/bin/sno-install bootstrap-in-place"+retried)
	// Since 4.19 the live system gets its kubelet from the release first (U-INS-36).
	hasLines(t, units, "node-image.service", "Before=kubelet.service crio.service bootkube.service",
		"ExecStartPre=/usr/bin/install -D -m 0755 /usr/local/bin/sno-install /run/sno-install/add-node-image", "ExecStart=/run/sno-install/add-node-image add-node-image")
	if !strings.Contains(string(text), `"[Unit]\nRequires=node-image.service\nAfter=node-image.service\n"`) {
		t.Error("the kubelet does not wait for the node image")
	}
	noProxy := manifests.NoProxy(in.Config)
	for name, want := range map[string]ignitiontest.Entry{
		"/etc/containers/registries.conf.d/50-sno-install-mirrors.conf": {Mode: 0o644, Content: mirrorText},
		"/etc/pki/ca-trust/source/anchors/sno-install.crt":              {Mode: 0o644, Content: "the site's CAs"},
		"/etc/systemd/system.conf.d/10-sno-install-proxy.conf": {Mode: 0o600, Content: "[Manager]\n" +
			`DefaultEnvironment="HTTP_PROXY=http://user:p%%20w@proxy.example.com:3128" "http_proxy=http://user:p%%20w@proxy.example.com:3128" ` +
			`"NO_PROXY=` + noProxy + `" "no_proxy=` + noProxy + "\"\n"},
		"/" + node.PullSecret: {Mode: 0o600, Content: in.Config.PullSecret},
		"/" + node.Program:    {Mode: 0o755, Content: in.Program.URL},
		"/" + node.LiveDir:    {Mode: fs.ModeDir | 0o700},
	} {
		fixture.Equal(t, name, want, entries[name])
	}
	if !strings.Contains(string(text), "sha512-"+in.Program.SHA512) {
		t.Error("the program has no sum")
	}
}

// Due certificates are renewed at least twenty times in the validity, and after a start.
func TestRotateTimer(t *testing.T) {
	for validity, want := range map[string]string{
		"87600h": "*-*-* 00/6:17:00", "24h": "*-*-* *:17:00", "19h": "*-*-* *:03/10:00", "30m": "*-*-* *:*:00", "5m": "*-*-* *:*:00/15",
	} {
		in := input(t, installconfig.AllInOne, inputs.Kubernetes)
		in.Settings.Validity = validity
		text := fixture.Must(create.AllInOne(in))
		_, units := ignitiontest.Read(t, text)
		if !strings.Contains(units["sno-rotate.timer"], "[Timer]\nOnCalendar="+want+"\nOnBootSec=15s\n") {
			t.Errorf("%s: %s", validity, units["sno-rotate.timer"])
		}
	}
}

// Disabled hyperthreading sets a kernel argument, once.
func TestHyperthreading(t *testing.T) {
	for _, extra := range []string{"quiet\n", "nosmt\n"} {
		in := input(t, installconfig.AllInOne, inputs.Kubernetes)
		in.Config.ControlPlane.Hyperthreading = "Disabled"
		in.Extra.FS = fstest.MapFS{"kernel-arguments/a.conf": {Data: []byte(extra), Mode: 0o644}}
		text, err := create.AllInOne(in)
		if err != nil || strings.Count(string(text), `"nosmt"`) != 1 || strings.Contains(string(text), `"quiet"`) != (extra == "quiet\n") {
			t.Errorf("%s: %v, %s", extra, err, text[:min(len(text), 200)])
		}
	}
}

func file(path string) *create.Folder {
	return &create.Folder{Name: "mine", FS: fstest.MapFS{"files/" + path: {Data: []byte("[Service]\n"), Mode: 0o644}}}
}
