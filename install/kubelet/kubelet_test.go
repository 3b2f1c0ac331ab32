// SPDX-License-Identifier: Apache-2.0

package kubelet_test

import (
	"io/fs"
	"net/netip"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/files"

	"github.com/solonode/sno/install/ignition"
	"github.com/solonode/sno/install/ignition/ignitiontest"
	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/kubelet"
	"github.com/solonode/sno/install/node"
)

func unit(description, runtime, arguments string) string {
	return `[Unit]
Description=` + description + `
Wants=network-online.target ` + runtime + `
After=network-online.target ` + runtime + `
StartLimitIntervalSec=0

[Service]
EnvironmentFile=-/etc/kubernetes/kubelet.env
ExecStart=/usr/bin/kubelet --config=/etc/kubernetes/kubelet.conf --config-dir=/etc/kubernetes/kubelet.conf.d` + arguments + `
Restart=always
RestartSec=1

[Install]
WantedBy=multi-user.target
`
}

func networkConfig(route, pods string) string {
	return `{
  "cniVersion": "0.4.0", "name": "sno",
  "plugins": [
    {"type": "ptp", "ipMasq": true, "ipam": {"type": "host-local", "dataDir": "/run/cni-ipam-state",
      "routes": [{"dst": "` + route + `"}], "ranges": [[{"subnet": "` + pods + `"}]]}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`
}

// The API of the bootstrap kubelet refuses all requests. A member requests its certificates (R-AIO-9), and has no
// taints (R-AIO-6). When the machine restarts its control plane ends after all other pods (R-MCO-3, U-REN-41).
func TestAdd(t *testing.T) {
	member := func(dns string) map[string]any {
		return map[string]any{
			"authentication": map[string]any{
				"anonymous": map[string]any{"enabled": false}, "webhook": map[string]any{"enabled": true},
				"x509": map[string]any{"clientCAFile": "/etc/kubernetes/static-pod-resources/kube-apiserver-certs/configmaps/client-ca/ca-bundle.crt"},
			},
			"authorization": map[string]any{"mode": "Webhook"}, "rotateCertificates": true, "serverTLSBootstrap": true,
			"clusterDNS": []any{dns}, "clusterDomain": "cluster.local",
			"shutdownGracePeriodByPodPriority": []any{
				map[string]any{"priority": 0.0, "shutdownGracePeriodSeconds": 90.0}, map[string]any{"priority": 2000000000.0, "shutdownGracePeriodSeconds": 30.0},
				map[string]any{"priority": 2000001000.0, "shutdownGracePeriodSeconds": 60.0},
			},
		}
	}
	standaloneUnit := unit("Kubelet of the bootstrap phase, for static pods", "crio.service", "")
	memberUnit := unit("Kubelet", "containerd.service", " --kubeconfig=/var/lib/kubelet/kubeconfig --bootstrap-kubeconfig=/etc/kubernetes/kubeconfig $KUBELET_NODE_ARGS")
	add := func(pods, dns string) func(*ignition.Builder) error {
		return func(b *ignition.Builder) error {
			return kubelet.AddMember(b, "test", node.Containerd, netip.MustParsePrefix(pods), netip.MustParseAddr(dns))
		}
	}
	for name, test := range map[string]struct {
		add           func(*ignition.Builder) error
		runtime, unit string
		config        map[string]any
		network       string
	}{
		"standalone": {
			func(b *ignition.Builder) error { return kubelet.AddStandalone(b, "test", node.CRIO) },
			"unix:///var/run/crio/crio.sock", standaloneUnit, map[string]any{
				"authentication": map[string]any{"anonymous": map[string]any{"enabled": false}, "webhook": map[string]any{"enabled": false}},
				"authorization":  map[string]any{"mode": "AlwaysAllow"},
			}, "",
		},
		"member": {
			add("10.128.0.0/23", "172.30.0.10"), "unix:///run/containerd/containerd.sock", memberUnit, member("172.30.0.10"), networkConfig("0.0.0.0/0", "10.128.0.0/23"),
		},
		"member with IPv6": {
			add("fd01::/64", "fd02::a"), "unix:///run/containerd/containerd.sock", memberUnit, member("fd02::a"), networkConfig("::/0", "fd01::/64"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			var b ignition.Builder
			fixture.NoError(t, test.add(&b))
			text := fixture.Must(b.Encode())
			ignitiontest.Validate(t, text)
			entries, units := ignitiontest.Read(t, text)
			fixture.Equal(t, "units", map[string]string{"kubelet.service": test.unit}, units)
			test.config["apiVersion"], test.config["kind"] = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"
			test.config["staticPodPath"], test.config["containerRuntimeEndpoint"], test.config["cgroupDriver"] = "/"+node.ManifestDir, test.runtime, "systemd"
			var config map[string]any
			fixture.NoError(t, yaml.UnmarshalStrict([]byte(entries["/"+kubelet.ConfigFile].Content), &config))
			fixture.Equal(t, "configuration", test.config, config)
			want := map[string]ignitiontest.Entry{
				"/etc/kubernetes/kubelet.conf":   {Mode: 0o644, Content: entries["/"+kubelet.ConfigFile].Content},
				"/etc/kubernetes/kubelet.conf.d": {Mode: fs.ModeDir | 0o755},
			}
			if test.network == "" {
				want["/etc/kubernetes/manifests"] = ignitiontest.Entry{Mode: fs.ModeDir | 0o700}
			} else {
				want["/etc/cni/net.d/10-sno.conflist"] = ignitiontest.Entry{Mode: 0o644, Content: test.network}
			}
			fixture.Equal(t, "files", want, entries)
		})
	}
}

// The kubelet registers with the name and the addresses in certificates and static pods.
func TestEnvironment(t *testing.T) {
	addresses := []netip.Addr{netip.MustParseAddr("192.0.2.10"), netip.MustParseAddr("2001:db8::10")}
	for want, s := range map[string]*node.Settings{
		"KUBELET_NODE_ARGS=--hostname-override=master0 --node-ip=192.0.2.10\n":              {Name: "master0", Addresses: addresses[:1]},
		"KUBELET_NODE_ARGS=--hostname-override=master0 --node-ip=192.0.2.10,2001:db8::10\n": {Name: "master0", Addresses: addresses},
	} {
		file := files.File{Path: "etc/kubernetes/kubelet.env", Mode: 0o644, Content: []byte(want)}
		fixture.Equal(t, "", file, kubelet.Environment(s))
	}
}

// The kubelet reads new CAs from a file, since its kubeconfig is not renewed with them.
func TestAccess(t *testing.T) {
	original := clientcmdapi.NewConfig()
	original.Clusters["lb"] = &clientcmdapi.Cluster{Server: "https://localhost:6443", CertificateAuthorityData: []byte("a bundle")}
	original.AuthInfos["kubelet"] = &clientcmdapi.AuthInfo{ClientCertificateData: []byte("a certificate"), ClientKeyData: []byte("a key")}
	original.Contexts["kubelet"] = &clientcmdapi.Context{Cluster: "lb", AuthInfo: "kubelet"}
	original.CurrentContext = "kubelet"
	text := fixture.Must(clientcmd.Write(*original))
	got := fixture.Must(kubelet.AccessFiles(text))
	original.Clusters["lb"].CertificateAuthority, original.Clusters["lb"].CertificateAuthorityData = "/etc/kubernetes/apiserver-ca.crt", nil
	text = fixture.Must(clientcmd.Write(*original))
	want := []files.File{
		{Path: "etc/kubernetes/apiserver-ca.crt", Mode: 0o644, Content: []byte("a bundle")}, {Path: "etc/kubernetes/kubeconfig", Mode: 0o600, Content: text},
	}
	fixture.Equal(t, "", want, got)
	for _, wrong := range []string{"", "{", string(text)} {
		if _, err := kubelet.AccessFiles([]byte(wrong)); err == nil {
			t.Errorf("no error for %q", wrong)
		}
	}
}
