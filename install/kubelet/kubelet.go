// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/files"

	"github.com/solonode/sno/install/ignition"
	"github.com/solonode/sno/install/node"
)

// Paths relative to the root.
const (
	ConfigFile = "etc/kubernetes/kubelet.conf"
	// DropInDir has files KubeletConfiguration that end in .conf.
	DropInDir = "etc/kubernetes/kubelet.conf.d"
	// EnvironmentFile has arguments that only the machine can determine.
	EnvironmentFile = "etc/kubernetes/kubelet.env"
	// Kubeconfig is written by the kubelet when it gets its certificate.
	Kubeconfig = "var/lib/kubelet/kubeconfig"
	Unit       = "kubelet.service"
	HealthURL  = "http://127.0.0.1:10248/healthz"

	// NetworkFile is the configuration of the pod network.
	NetworkFile = "etc/cni/net.d/10-sno.conflist"

	// ServerCA is the bundle for the API server. Kubeconfigs refer to the file, because it is renewed more often than they
	// are.
	ServerCA = "etc/kubernetes/apiserver-ca.crt"

	// clientCA is written and renewed with the static pods.
	clientCA = "/" + node.ResourceDir + "/kube-apiserver-certs/configmaps/client-ca/ca-bundle.crt"
)

var errConfig = errors.New("cannot write the kubelet's configuration")

// AddStandalone adds a kubelet for static pods only, whose API refuses all requests.
func AddStandalone(b *ignition.Builder, source string, runtime node.Runtime) error {
	// A kubelet without the folder retries only after many seconds.
	b.AddDir(source, node.ManifestDir, 0o700)
	return add(b, source, "Kubelet of the bootstrap phase, for static pods", "", runtime, map[string]any{
		"authentication": map[string]any{"anonymous": map[string]any{"enabled": false}, "webhook": map[string]any{"enabled": false}},
		"authorization":  map[string]any{"mode": "AlwaysAllow"},
	})
}

// AddMember adds a kubelet that joins the control plane of its own machine. It requests its identity with
// node.KubeletBootstrap (R-AIO-9). Its node is schedulable, without taints (R-AIO-6). pods is the range of pod
// addresses, and dns the address of the cluster's DNS.
func AddMember(b *ignition.Builder, source string, runtime node.Runtime, pods netip.Prefix, dns netip.Addr) error {
	b.AddFile(source, files.File{Path: NetworkFile, Mode: 0o644, Content: fmt.Appendf(nil, networkConfig, defaultRoute(pods), pods)})
	arguments := fmt.Sprintf(" --kubeconfig=/%s --bootstrap-kubeconfig=/%s $KUBELET_NODE_ARGS", Kubeconfig, node.KubeletBootstrap)
	return add(b, source, "Kubelet", arguments, runtime, map[string]any{
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false}, "webhook": map[string]any{"enabled": true}, "x509": map[string]any{"clientCAFile": clientCA},
		},
		"authorization":      map[string]any{"mode": "Webhook"},
		"rotateCertificates": true, "serverTLSBootstrap": true,
		"clusterDNS": []string{dns.String()}, "clusterDomain": "cluster.local",
		"shutdownGracePeriodByPodPriority": shutdownPeriods,
	})
}

// shutdownPeriods let pods end gracefully when the machine restarts (R-MCO-3): workloads first, then pods of class
// system-cluster-critical, the control plane last (U-REN-41). The kubelet makes logind wait for the sum.
var shutdownPeriods = []map[string]int{
	{"priority": 0, "shutdownGracePeriodSeconds": 90}, {"priority": 2000000000, "shutdownGracePeriodSeconds": 30}, {"priority": 2000001000, "shutdownGracePeriodSeconds": 60},
}

// AccessFiles returns the files with which a member requests its certificate, from an inline kubeconfig. The kubelet
// reads them when it starts.
func AccessFiles(kubeconfig []byte) ([]files.File, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAccess, err)
	}
	context := config.Contexts[config.CurrentContext]
	if context == nil || config.Clusters[context.Cluster] == nil || len(config.Clusters[context.Cluster].CertificateAuthorityData) == 0 {
		return nil, fmt.Errorf("%w: no CA", errAccess)
	}
	cluster := config.Clusters[context.Cluster]
	ca := cluster.CertificateAuthorityData
	cluster.CertificateAuthority, cluster.CertificateAuthorityData = "/"+ServerCA, nil
	text, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAccess, err)
	}
	return []files.File{{Path: ServerCA, Mode: 0o644, Content: ca}, {Path: node.KubeletBootstrap, Mode: 0o600, Content: text}}, nil
}

var errAccess = errors.New("the kubeconfig with which the kubelet requests its certificate")

// Environment returns the file with the name and the addresses of the node.
func Environment(s *node.Settings) files.File {
	addresses := make([]string, len(s.Addresses))
	for i, a := range s.Addresses {
		addresses[i] = a.String()
	}
	text := fmt.Sprintf("KUBELET_NODE_ARGS=--hostname-override=%s --node-ip=%s\n", s.Name, strings.Join(addresses, ","))
	return files.File{Path: EnvironmentFile, Mode: 0o644, Content: []byte(text)}
}

func add(b *ignition.Builder, source, description, arguments string, runtime node.Runtime, fields map[string]any) error {
	fields["apiVersion"], fields["kind"] = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"
	fields["staticPodPath"], fields["containerRuntimeEndpoint"], fields["cgroupDriver"] = "/"+node.ManifestDir, runtime.Endpoint, "systemd"
	text, err := yaml.Marshal(fields)
	if err != nil {
		return fmt.Errorf("%w: %w", errConfig, err)
	}
	b.AddFile(source, files.File{Path: ConfigFile, Mode: 0o644, Content: text})
	b.AddDir(source, DropInDir, 0o755)
	b.AddUnit(source, Unit, fmt.Sprintf(unit, description, runtime.Unit, EnvironmentFile, node.Kubelet, ConfigFile, DropInDir, arguments))
	return nil
}

// unit restarts the kubelet, without a limit, until its files have been rendered. It starts the runtime, because images
// of CoreOS do not.
const unit = `[Unit]
Description=%[1]s
Wants=network-online.target %[2]s
After=network-online.target %[2]s
StartLimitIntervalSec=0

[Service]
EnvironmentFile=-/%[3]s
ExecStart=/%[4]s --config=/%[5]s --config-dir=/%[6]s%[7]s
Restart=always
RestartSec=1

[Install]
WantedBy=multi-user.target
`

func defaultRoute(pods netip.Prefix) string {
	if pods.Addr().Is4() {
		return "0.0.0.0/0"
	}
	return "::/0"
}

// networkConfig uses only standard CNI plugins.
const networkConfig = `{
  "cniVersion": "0.4.0", "name": "sno",
  "plugins": [
    {"type": "ptp", "ipMasq": true, "ipam": {"type": "host-local", "dataDir": "/run/cni-ipam-state",
      "routes": [{"dst": %q}], "ranges": [[{"subnet": %q}]]}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`
