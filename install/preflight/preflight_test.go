// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	api "github.com/openshift/api"
	"golang.org/x/net/dns/dnsmessage"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/phase"
	"github.com/solonode/sno/render/files"
)

// texts returns the findings without advice, which all have except StateOK.
func texts(t *testing.T, findings []Finding) []string {
	t.Helper()
	var all []string
	for _, f := range findings {
		if (f.State == StateOK) != (f.Advice == "") {
			t.Errorf("%s: advice %q", f.State, f.Advice)
		}
		all = append(all, fmt.Sprintf("%s %s: %s", f.State, f.Check, f.Message))
	}
	return all
}

// same compares findings with those that are wanted, in which "..." is any text.
func same(t *testing.T, want []string, findings []Finding) {
	t.Helper()
	got := texts(t, findings)
	for i := range got {
		if i < len(want) {
			if before, after, found := strings.Cut(want[i], "..."); found && len(got[i]) >= len(before)+len(after) &&
				strings.HasPrefix(got[i], before) && strings.HasSuffix(got[i], after) {
				got[i] = want[i]
			}
		}
	}
	fixture.Equal(t, "findings", want, got)
}

// program adds a program to PATH that prints text if it has the arguments, and fails otherwise.
func program(t *testing.T, name, args, text string) {
	t.Helper()
	dir := t.TempDir()
	fixture.Script(t, dir, name, fmt.Sprintf("if test \"$*\" != '%s'; then echo \"no $*\" >&2; exit 32; fi\ncat <<'END'\n%s\nEND", args, text))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func addresses(all ...string) []netip.Addr {
	var parsed []netip.Addr
	for _, a := range all {
		parsed = append(parsed, netip.MustParseAddr(a))
	}
	return parsed
}

// resolver returns a resolver of these records, from names to addresses. The server does not answer for the address
// "silent".
func resolver(t *testing.T, records map[string]string) *net.Resolver {
	t.Helper()
	server := fixture.Must(net.ListenPacket("udp", "127.0.0.1:0"))
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 512)
		for {
			n, from, err := server.ReadFrom(buffer)
			if err != nil {
				return
			}
			if reply, err := answerTo(buffer[:n], records); err != nil {
				t.Error(err)
			} else if reply != nil {
				_, _ = server.WriteTo(reply, from)
			}
		}
	}()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

func answerTo(query []byte, records map[string]string) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		return nil, err
	}
	q := m.Questions[0]
	name := strings.TrimSuffix(q.Name.String(), ".")
	value, found := records[name]
	if _, parent, _ := strings.Cut(name, "."); !found {
		value, found = records["*."+parent]
	}
	if value == "silent" {
		return nil, nil
	}
	m.Response, m.Additionals = true, nil
	if !found {
		m.RCode = dnsmessage.RCodeNameError
	}
	for _, text := range strings.Fields(value) {
		a := netip.MustParseAddr(text)
		header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1}
		switch {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: a.As4()}})
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	return m.Pack()
}

// All four records are resolved, and compared with the node's addresses (R-BIP-20).
func TestDNS(t *testing.T) {
	const domain = "sno.example.com"
	good := map[string]string{
		"api.sno.example.com": "192.0.2.10 2001:db8::10", "api-int.sno.example.com": "192.0.2.10",
		"*.apps.sno.example.com": "192.0.2.10", "master0.sno.example.com": "192.0.2.10",
	}
	ok := []string{
		"ok dns: api.sno.example.com: [192.0.2.10 2001:db8::10]", "ok dns: api-int.sno.example.com: [192.0.2.10]",
		"ok dns: *.apps.sno.example.com: [192.0.2.10]", "ok dns: master0.sno.example.com: [192.0.2.10]",
	}
	node := Input{Name: "master0", Addresses: addresses("192.0.2.10", "2001:db8::10")}
	networks := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/64")}
	for name, test := range map[string]struct {
		in      Input
		records map[string]string
		want    map[int]string // in place of ok
	}{
		"good":             {node, nil, nil},
		"qualified name":   {Input{Name: "master0.sno.example.com."}, nil, nil},
		"machine networks": {Input{Name: "master0", MachineNetworks: networks}, nil, nil},
		"none": {node, map[string]string{"api-int.sno.example.com": "none", "master0.sno.example.com": "none"}, map[int]string{
			1: "failed dns: api-int.sno.example.com: no such record", 3: "failed dns: master0.sno.example.com: no such record",
		}},
		"one application, and no wildcard": {
			node, map[string]string{"*.apps.sno.example.com": "none", "console-openshift-console.apps.sno.example.com": "192.0.2.10"},
			map[int]string{2: "failed dns: *.apps.sno.example.com: no such record"},
		},
		"other addresses": {
			node, map[string]string{"api.sno.example.com": "192.0.2.11", "master0.sno.example.com": "192.0.2.10 192.0.2.11"},
			map[int]string{
				0: "warning dns: api.sno.example.com: not the node's: [192.0.2.11]",
				3: "failed dns: master0.sno.example.com: not the node's: [192.0.2.11]",
			},
		},
		"in no machine network": {
			Input{Name: "master0", MachineNetworks: networks}, map[string]string{"api.sno.example.com": "192.0.3.10"},
			map[int]string{0: "warning dns: api.sno.example.com: not the node's: [192.0.3.10]"},
		},
		"name not known": {
			Input{}, nil,
			map[int]string{3: "warning dns: the record of the host was not resolved: the node's name is unknown"},
		},
		"no answer": {
			Input{Name: "master0", Timeout: 50 * time.Millisecond}, map[string]string{"api-int.sno.example.com": "silent"},
			map[int]string{1: "failed dns: api-int.sno.example.com: lookup ...i/o timeout"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			records := map[string]string{}
			for record, value := range good {
				records[record] = value
			}
			for record, value := range test.records {
				if records[record] = value; value == "none" {
					delete(records, record)
				}
			}
			in := test.in
			in.Checks, in.Domain, in.Resolver = []string{DNS}, domain, resolver(t, records)
			want := append([]string{}, ok...)
			for i, text := range test.want {
				want[i] = text
			}
			same(t, want, Check(t.Context(), in))
		})
	}
}

const ipOutput = `[{"ifname":"lo","addr_info":[{"local":"127.0.0.1","scope":"host","valid_life_time":4294967295}]},
{"ifname":"eno1","addr_info":[{},{"local":"192.0.2.10","scope":"global","valid_life_time":4294967295},
{"local":"192.0.2.20","scope":"global","dynamic":true,"valid_life_time":3600},
{"local":"2001:db8::10","scope":"global","temporary":true,"dynamic":true,"valid_life_time":600},
{"local":"fe80::1","scope":"link","valid_life_time":4294967295}]}]`

// An address with a lease may change at the restart (R-BIP-19).
func TestAddress(t *testing.T) {
	program(t, "ip", "-json address show up", ipOutput)
	prefix := netip.MustParsePrefix
	const fixed, lease = "ok address: 192.0.2.10 of eno1 is static", "warning address: 192.0.2.20 of eno1 is leased, for another 1h0m0s"
	const has = "has [192.0.2.10 192.0.2.20 2001:db8::10]"
	for name, test := range map[string]struct {
		in   Input
		want []string
	}{
		"static":          {Input{Addresses: addresses("192.0.2.10")}, []string{fixed}},
		"leased":          {Input{Addresses: addresses("192.0.2.20")}, []string{lease}},
		"leased, for now": {Input{Addresses: addresses("192.0.2.20"), Static: []netip.Prefix{prefix("192.0.2.20/24")}}, []string{"ok address: 192.0.2.20 of eno1 is in the network configuration"}},
		"temporary":       {Input{Addresses: addresses("2001:db8::10")}, []string{"failed address: 2001:db8::10 of eno1 is a temporary address"}},
		"other machine": {Input{Addresses: addresses("192.0.2.10", "192.0.2.11")}, []string{
			fixed, "failed address: no interface that is up has the node's address 192.0.2.11; this machine " + has,
		}},
		"machine network": {Input{MachineNetworks: []netip.Prefix{prefix("192.0.2.0/24"), prefix("2001:db8::/64")}}, []string{fixed, lease}},
		"another network": {Input{MachineNetworks: []netip.Prefix{prefix("10.0.0.0/16")}}, []string{
			"failed address: no address of the machine is in a machine network of [10.0.0.0/16]; it " + has,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			in := test.in
			in.Host, in.Checks = true, []string{Address}
			same(t, test.want, Check(t.Context(), in))
		})
	}
	t.Setenv("PATH", "/none")
	same(t, []string{"failed address: ip -json address show up: ...not found in $PATH: "}, Check(t.Context(), Input{Host: true, Checks: []string{Address}}))
}

func TestDisk(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"dev/sda", "dev/null"} {
		fixture.NoError(t, errors.Join(os.MkdirAll(filepath.Join(root, "dev"), 0o755), os.WriteFile(filepath.Join(root, name), nil, 0o600)))
	}
	const part = `{"path":"/dev/sda1","type":"part","size":1,"ro":false,"mountpoints":[`
	for name, test := range map[string]struct {
		disk, lsblk string
		want        []string
	}{
		"free":      {"/dev/sda", `"type":"disk","size":107374182400,"ro":false,"mountpoints":[null],"children":[` + part + `null]}]`, []string{"ok disk: /dev/sda is a whole disk of 100.0 GiB (107374182400 bytes), and not in use"}},
		"multipath": {"/dev/sda", `"type":"mpath","size":107374182400,"ro":false,"mountpoints":[null]`, []string{"ok disk: /dev/sda is a whole disk of 100.0 GiB (107374182400 bytes), and not in use"}},
		"small":     {"/dev/sda", `"type":"disk","size":107374182399,"ro":false,"mountpoints":[null]`, []string{"failed disk: /dev/sda has 100.0 GiB (107374182399 bytes), and needs 100.0 GiB (107374182400 bytes)"}},
		"a partition, read-only": {
			"/dev/sda", `"type":"part","size":107374182400,"ro":true,"mountpoints":[null]`,
			[]string{"failed disk: /dev/sda is not a whole disk, but of type part", "failed disk: /dev/sda is read-only"},
		},
		"live medium":    {"/dev/sda", `"type":"disk","size":107374182400,"ro":false,"mountpoints":["/run/media/iso"]`, []string{"failed disk: /dev/sda is in use: /dev/sda is mounted on /run/media/iso"}},
		"mounted below":  {"/dev/sda", `"type":"disk","size":107374182400,"ro":false,"mountpoints":[null],"children":[` + part + `"[SWAP]"]}]`, []string{"failed disk: /dev/sda is in use: /dev/sda1 is mounted on [SWAP]"}},
		"used by LVM":    {"/dev/sda", `"type":"disk","size":107374182400,"ro":false,"mountpoints":[null],"children":[` + part + `null],"children":[{"path":"/dev/mapper/vg-data","type":"lvm"}]}]`, []string{"failed disk: /dev/sda is in use: /dev/sda1 is used by /dev/mapper/vg-data"}},
		"no disk":        {"", "", []string{"failed disk: no disk is set"}},
		"does not exist": {"/dev/sdb", "", []string{"failed disk: /dev/sdb does not exist: lstat ...: no such file or directory"}},
		"no JSON":        {"/dev/sda", `}`, []string{"failed disk: lsblk /dev/sda: the output is not one device: ..."}},
		"no device":      {"/dev/null", "", []string{"failed disk: ...exit status 32: no --json --bytes --output PATH,TYPE,SIZE,RO,MOUNTPOINTS /dev/null"}},
	} {
		t.Run(name, func(t *testing.T) {
			program(t, "lsblk", "--json --bytes --output PATH,TYPE,SIZE,RO,MOUNTPOINTS /dev/sda",
				`{"blockdevices":[{"path":"/dev/sda",`+test.lsblk+`}]}`)
			in := Input{Host: true, Checks: []string{Disk}, Disk: test.disk, Root: root}
			same(t, test.want, Check(t.Context(), in))
		})
	}
}

// At another machine the checks of the machine say what is not known there.
func TestElsewhere(t *testing.T) {
	networks := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	in := Input{Checks: []string{Address, Disk}, Disk: "/dev/sda", MachineNetworks: networks}
	const disk = "warning disk: not known here: whether /dev/sda is a whole disk, large enough and not in use"
	same(t, []string{"warning address: not known here: an address of the machine has to be in a machine network of [192.0.2.0/24]", disk}, Check(t.Context(), in))
	in.Addresses = addresses("192.0.2.10")
	same(t, []string{"ok address: [192.0.2.10] of the network configuration is in a machine network of [192.0.2.0/24]", disk}, Check(t.Context(), in))
}

func TestPrograms(t *testing.T) {
	in := Input{Host: true, Disk: "/dev/null", Addresses: addresses("203.0.113.77"), Checks: []string{Address, Disk}}
	c := &checker{Input: in}
	c.Timeout = time.Minute
	for program, probe := range map[string]string{"ip": "-json address", "lsblk": "--json --output MOUNTPOINTS"} {
		if _, err := c.program(t.Context(), program, strings.Fields(probe)...); err != nil {
			t.Skipf("missing or old program: %v", err)
		}
	}
	same(t, []string{
		"failed address: no interface that is up has the node's address 203.0.113.77; this machine has ...",
		"failed disk: ...: lsblk: /dev/null: not a block device",
	}, Check(t.Context(), in))
}

// A kind of openshift/api is never one that nothing serves.
func TestReleaseGroups(t *testing.T) {
	known := runtime.NewScheme()
	fixture.NoError(t, api.Install(known))
	for _, version := range known.PrioritizedVersionsAllGroups() {
		isFile := strings.HasSuffix(version.Group, ".config.openshift.io") // kinds of files of a program
		if !isFile && !slices.Contains(releaseGroups, version.Group) && !scheme.Scheme.IsGroupRegistered(version.Group) {
			t.Errorf("%s is missing", version.Group)
		}
	}
}

// The CRDs are those in the proposal of bootstrap in place (R-BIP-21).
func TestManifests(t *testing.T) {
	kinds := map[string]string{
		"clusternetworks.network.openshift.io":                   "ClusterNetwork",
		"controllerconfigs.machineconfiguration.openshift.io":    "ControllerConfig",
		"egressnetworkpolicies.network.openshift.io":             "EgressNetworkPolicy",
		"hostsubnets.network.openshift.io":                       "HostSubnet",
		"ippools.whereabouts.cni.cncf.io":                        "IPPool",
		"netnamespaces.network.openshift.io":                     "NetNamespace",
		"network-attachment-definitions.k8s.cni.cncf.io":         "NetworkAttachmentDefinition",
		"overlappingrangeipreservations.whereabouts.cni.cncf.io": "OverlappingRangeIPReservation",
		"volumesnapshotclasses.snapshot.storage.k8s.io":          "VolumeSnapshotClass",
		"volumesnapshotcontents.snapshot.storage.k8s.io":         "VolumeSnapshotContent",
		"volumesnapshots.snapshot.storage.k8s.io":                "VolumeSnapshot",
	}
	object := func(apiVersion, kind, name string) string {
		return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s}\n---\n", apiVersion, kind, name)
	}
	check := func(text string) []Finding {
		return Check(t.Context(), Input{Checks: []string{Manifests}, Manifests: []files.File{{Path: "manifests/a.yaml", Content: []byte(text)}}})
	}
	harmless := object("v1", "ConfigMap", "a") + object("apps/v1", "Deployment", "b") + object("network.openshift.io/v1", "Other", "c")
	for crd, kind := range kinds {
		_, group, _ := strings.Cut(crd, ".")
		text := harmless + object(group+"/v1beta9", kind, "mine")
		same(t, []string{"failed manifests: manifests/a.yaml: " + kind + " mine: a cluster operator installs the CRD " + crd + ", after the restart"}, check(text))
		same(t, []string{"ok manifests: 1 manifests, and none needs a CRD of a cluster operator"},
			check(text+object("apiextensions.k8s.io/v1", "CustomResourceDefinition", crd)))
	}
	same(t, []string{"ok manifests: 1 manifests, and none needs a CRD of a cluster operator"}, check(harmless))
	same(t, []string{
		"failed manifests: manifests/a.yaml: ...", "failed manifests: manifests/a.yaml: HostSubnet x: ..., after the restart",
	}, check(object("network.openshift.io/v1", "HostSubnet", "x")+"}"))

	// Kinds of operators that are installed later would have the installation wait for an hour.
	for apiVersion, kind := range map[string]string{
		"lvm.topolvm.io/v1alpha1": "LVMCluster", "nmstate.io/v1": "NodeNetworkConfigurationPolicy", "sriovnetwork.openshift.io/v1": "SriovNetwork", "ptp.openshift.io/v1": "PtpConfig",
	} {
		group, _, _ := strings.Cut(apiVersion, "/")
		message := "manifests: manifests/a.yaml: " + kind + " x: neither Kubernetes nor a release serves kinds of " + group
		text := object(apiVersion, kind, "x")
		same(t, []string{"failed " + message}, check(text))
		same(t, []string{"warning " + message}, Check(t.Context(), Input{
			Checks: []string{Manifests}, Creating: true, Manifests: []files.File{{Path: "manifests/a.yaml", Content: []byte(text)}},
		}))
		same(t, []string{"ok manifests: 1 manifests, and none needs a CRD of a cluster operator"},
			check(text+object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "any."+group)))
	}
}

// By default all checks with input run. Failures are an error with advice.
func TestWhichChecks(t *testing.T) {
	program(t, "ip", "-json address show up", ipOutput)
	now := time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC)
	in := Input{Root: t.TempDir(), Now: func() time.Time { return now }, Disk: "/dev/sda"}
	const clock = "ok clock: the clock has 2026-11-25T08:00:00Z"
	same(t, []string{"warning disk: not known here: ...", clock}, Check(t.Context(), in))
	in.Host = true
	found := Check(t.Context(), in)
	same(t, []string{"ok address: 192.0.2.10 of eno1 is static", "warning address: 192.0.2.20 of eno1 is leased, for another 1h0m0s",
		"failed disk: /dev/sda does not exist: ...", clock}, found)
	err := Failed(found)
	if !errors.Is(err, phase.ErrInput) || !strings.Contains(err.Error(), "disk: /dev/sda does not exist") ||
		!strings.Contains(err.Error(), "use a whole disk") || strings.Contains(err.Error(), "leased") {
		t.Errorf("error %v", err)
	}
	if err := Failed(found[:2]); err != nil {
		t.Errorf("a warning is an error: %v", err)
	}
	in.Checks = []string{Clock}
	same(t, []string{clock}, Check(t.Context(), in))
}
