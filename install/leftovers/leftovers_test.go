// SPDX-License-Identifier: Apache-2.0

package leftovers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io/fs"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solonode/sno/render/inputs"

	"github.com/solonode/sno/install/credentials"
	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/node"
)

const (
	admin     = "admin-kubeconfig-signer"
	bootstrap = "openshift-kube-apiserver-operator_kubelet-bootstrap-kubeconfig-signer@1764000000"
)

func issued(t *testing.T, issuer, subject string) string {
	t.Helper()
	key := fixture.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	certificate := func(name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0),
			IsCA: name == issuer, BasicConstraintsValid: true,
		}
	}
	der := fixture.Must(x509.CreateCertificate(rand.Reader, certificate(subject), certificate(issuer), key.Public(), key))
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func kubeconfig(certificate string) string {
	return "kind: Config\napiVersion: v1\nusers:\n- name: u\n  user:\n    client-certificate-data: " +
		base64.StdEncoding.EncodeToString([]byte(certificate)) + "\n"
}

func link(t *testing.T, root, name string) {
	t.Helper()
	file := filepath.Join(root, name)
	fixture.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	fixture.NoError(t, os.Symlink("../nowhere", file))
}

const presetLines = "enable kubelet.service\ndisable aiokube.service\nenable my-bootkube.service\n"

func clean(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"etc/hostname":                                                "cp-1\n",
		node.ManifestDir + "/etcd-pod.yaml":                           "kind: Pod\n",
		node.EtcdData + "/member/snap/db":                             "db",
		node.ImageProgram:                                             "program",
		node.UnitDir + "/kubelet.service":                             "[Unit]\n",
		node.Preset:                                                   presetLines,
		node.KubeletBootstrap:                                         kubeconfig(issued(t, bootstrap, "bootstrapper")),
		"etc/kubernetes/kubelet-ca.crt":                               issued(t, admin, admin) + issued(t, bootstrap, bootstrap),
		kubeletDir + "/kubeconfig":                                    "kind: Config\nusers:\n- user:\n    client-certificate: pki/a.pem\n",
		kubeletDir + "/pki/a.pem":                                     issued(t, "kube-csr-signer_@1764000000", "system:node:cp-1"),
		kubeletDir + "/pki/b.pem":                                     issued(t, "openshift-kube-apiserver-operator_node-system-admin-signer@1764000000", "system:admin"),
		kubeletDir + "/broken.kubeconfig":                             "client-certificate-data: {",
		kubeletDir + "/pods/u/volumes/tls.crt":                        issued(t, admin, "system:admin"),
		node.ResourceDir + "/kube-apiserver-pod-1/secrets/kubeconfig": kubeconfig(issued(t, admin, "system:admin")),
		node.UnitDir + "/kubelet.service.d/20-other.conf":             "[Service]\n",
	} {
		fixture.Put(t, root, name, text)
	}
	link(t, root, node.UnitDir+"/multi-user.target.wants/kubelet.service")
	return root
}

// Each leftover is found alone, all are found together, and a clean node has none (R-BIP-2, R-BIP-26).
func TestCheck(t *testing.T) {
	state := fixture.Must(credentials.New(t.Context(), credentials.Options{
		Profile: inputs.Kubernetes, Name: "sno", Domain: "sno.example.com", Validity: inputs.DefaultValidity, Now: time.Now(),
	}))
	type planted struct {
		path, text string
		kind       Kind
		at         string
		why        string
	}
	restore, post, upstream := node.RestoreUnit, node.PostRebootUnit, "bootkube.service"
	tests := map[string]planted{
		"settings":             {node.BootstrapSettings, "x", Folder, node.BootstrapConfigs, "bootstrap phase"},
		"kubeconfig":           {node.BootstrapKubeconfig, kubeconfig(issued(t, admin, "system:admin")), Folder, node.BootstrapSecrets, "bootstrap phase"},
		"marker":               {"etc/kubernetes/bootstrap-control-plane-ready", "", File, "", "bootstrap phase"},
		"snapshot":             {node.Snapshot, "x", Folder, node.SnapshotDir, "snapshot"},
		"partly restored":      {"var/lib/etcd/.restoring/member/snap/db", "x", Folder, "var/lib/etcd/.restoring", "partly restored"},
		"log bundle":           {node.LogBundle, "x", File, "", "logs"},
		"program":              {node.Program, "x", File, "", "installer"},
		"gather":               {node.GatherScript, "x", File, "", "gathers logs"},
		"gather of masters":    {node.MastersGatherScript, "x", File, "", "gathers logs"},
		"live system":          {node.LiveSettings, "x", Folder, node.LiveDir, "live system"},
		"drop-in":              {node.UnitDir + "/kubelet.service.d/" + node.RestoreDropIn, "x", File, "", restore},
		"restore unit":         {node.UnitDir + "/" + restore, "x", Unit, "", "restores etcd"},
		"masked unit":          {node.UnitDir + "/" + post, "", Unit, "", "after the restart"},
		"wanted":               {node.UnitDir + "/multi-user.target.wants/" + post, "", Link, "", "after the restart"},
		"required":             {node.UnitDir + "/kubelet.service.requires/" + restore, "", Link, "", "restores etcd"},
		"upstream's program":   {"usr/local/bin/bootstrap-in-place-post-reboot.sh", "x", File, "", upstream},
		"upstream's unit":      {node.UnitDir + "/" + upstream, "x", Unit, "", "upstream"},
		"upstream's link":      {node.UnitDir + "/multi-user.target.wants/" + upstream, "", Link, "", "upstream"},
		"restore preset":       {node.Preset, presetLines + "enable " + restore, Preset, "", `"enable ` + restore + `"`},
		"post-reboot preset":   {node.Preset, "disable " + post + "\n" + presetLines, Preset, "", `"disable ` + post + `"`},
		"upstream's preset":    {node.Preset, presetLines + "enable " + upstream + "\n", Preset, "", `"enable ` + upstream + `"`},
		"PEM":                  {kubeletDir + "/pki/c.pem", issued(t, "a", "a") + issued(t, bootstrap, "joining"), Certificate, "", "joining by " + bootstrap},
		"kubeconfig elsewhere": {"etc/kubernetes/x/y", kubeconfig(issued(t, admin, "system:admin")), Certificate, "", "system:admin by " + admin},
		"kubeconfig of the installer": {
			kubeletDir + "/admin.conf", string(state.Kubeconfig), Certificate, "", "system:admin by openshift-kube-apiserver-operator_" + admin + "@",
		},
	}
	check := func(t *testing.T, root string, want []planted) {
		t.Helper()
		found := fixture.Must(Check(t.Context(), root, Options{}))
		if len(found) != len(want) {
			t.Errorf("found %d, want %d: %v", len(found), len(want), found)
		}
		for _, w := range want {
			at := w.at
			if at == "" {
				at = w.path
			}
			if !slices.ContainsFunc(found, func(l Leftover) bool { return l.Kind == w.kind && l.Path == "/"+at && strings.Contains(l.Why, w.why) }) {
				t.Errorf("no %s %s with %q: %v", w.kind, at, w.why, found)
			}
		}
	}
	add := func(t *testing.T, root string, p planted) {
		t.Helper()
		if p.text == "" {
			link(t, root, p.path)
		} else {
			fixture.Put(t, root, p.path, p.text)
		}
	}
	t.Run("clean", func(t *testing.T) { check(t, clean(t), nil) })
	for name, p := range tests {
		t.Run(name, func(t *testing.T) {
			root := clean(t)
			add(t, root, p)
			check(t, root, []planted{p})
		})
	}
	t.Run("all", func(t *testing.T) {
		root, preset := clean(t), ""
		for _, p := range tests {
			if p.path == node.Preset {
				preset += p.text + "\n"
				continue
			}
			add(t, root, p)
		}
		fixture.Put(t, root, node.Preset, preset)
		check(t, root, slices.Collect(maps.Values(tests)))
	})
	t.Run("program of the image", func(t *testing.T) {
		root := clean(t)
		fixture.Put(t, root, node.ImageProgram, "x")
		if found, err := Check(t.Context(), root, Options{}); err != nil || len(found) > 0 {
			t.Errorf("%v, %v", found, err)
		}
	})
}

// crictl replaces the program by a script.
func crictl(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	fixture.Script(t, dir, "crictl", script)
	t.Setenv("PATH", dir)
}

// Images are found by tag and by digest. Without any in the options, crictl is not called (R-BIP-26).
func TestImages(t *testing.T) {
	const list = `{"images":[{"repoTags":["example.com/release:1"],"repoDigests":["example.com/release@sha256:01"]},
		{"repoTags":[],"repoDigests":["example.com/bootstrap@sha256:02"]},{"repoTags":["example.com/etcd:1"],"repoDigests":[]}]}`
	crictl(t, `test "$*" = "images --output=json" && echo '`+list+`'`)
	root := clean(t)
	found := fixture.Must(Check(t.Context(), root, Options{Images: []string{"example.com/bootstrap@sha256:02", "example.com/release:1", "example.com/etcd:2"}}))
	want := []Leftover{
		{Image, "example.com/bootstrap@sha256:02", "only the bootstrap phase needs it"}, {Image, "example.com/release:1", "only the bootstrap phase needs it"},
	}
	fixture.Equal(t, "", want, found)
	crictl(t, "exit 1")
	if found, err := Check(t.Context(), root, Options{}); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
}

// What cannot be read is an error. Other leftovers are still found.
func TestErrors(t *testing.T) {
	if _, err := Check(t.Context(), t.TempDir(), Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty root: %v", err)
	}
	for name, test := range map[string]struct {
		script string
		want   string
	}{
		"failure":  {"echo no runtime >&2; exit 3", "exit status 3: no runtime"},
		"no JSON":  {"echo IMAGE", "invalid character"},
		"no image": {"echo '{}'", ""},
	} {
		root := clean(t)
		fixture.Put(t, root, node.GatherScript, "x")
		crictl(t, test.script)
		found, err := Check(t.Context(), root, Options{Images: []string{"example.com/release:1"}})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if len(found) != 1 {
			t.Errorf("%s: found %v", name, found)
		}
	}
	// A file at the path of a folder, and a folder at that of a file.
	for _, name := range []string{node.UnitDir, "etc/kubernetes", "var/lib", node.Preset + "/folder"} {
		root := t.TempDir()
		fixture.Put(t, root, "etc/hostname", "cp-1\n")
		fixture.Put(t, root, node.GatherScript, "x")
		fixture.Put(t, root, name, "x")
		found, err := Check(t.Context(), root, Options{})
		fixture.Fails(t, name, err, strings.TrimSuffix(name, "/folder"))
		if len(found) != 1 {
			t.Errorf("%s: found %v", name, found)
		}
	}
}
