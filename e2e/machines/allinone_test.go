// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"cmp"
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
)

// An all-in-one node is a machine whose image boots with its config.
var _ = Describe("All in one", Ordered, Label("all-in-one"), func() {
	m := &machine{way: "all-in-one", command: aiokube, checks: everywhere(allInOne, runtimeIs("containerd"))}
	BeforeAll(m.setUp, NodeTimeout(stepTimeout))

	It("boots from a config without DNS, operators or another machine", func(ctx SpecContext) {
		m.configAllInOne(ctx)
		booted.allInOne = m.boot(ctx)
	}, SpecTimeout(stepTimeout))

	It("is a complete node, whose kubelet acts only with its own identity", m.passChecks, SpecTimeout(stepTimeout))
	m.inspection()

	It("is the same after a restart", func(ctx SpecContext) {
		m.passChecksAfterRestart(ctx)
		booted.allInOne.memory = m.memory(ctx)
	}, SpecTimeout(stepTimeout))
})

// CRI-O has no images: it pulls them.
var _ = Describe("All in one, with CRI-O", Ordered, Label("all-in-one-crio"), func() {
	m := &machine{way: "all-in-one-crio", command: aiokube, runtime: "crio", checks: everywhere(allInOne, runtimeIs("cri-o"))}
	BeforeAll(func(ctx SpecContext) {
		if !strings.HasPrefix(image, "sno/node:") {
			Skip("CRI-O is only in an image that was built here, not in " + image)
		}
		m.setUp(ctx)
	}, NodeTimeout(stepTimeout))

	It("boots from a config, and pulls its images", func(ctx SpecContext) {
		m.configAllInOne(ctx, "--image", "etcd="+etcdImage)
		m.boot(ctx)
	}, SpecTimeout(stepTimeout))

	It("is a complete node", m.passChecks, SpecTimeout(stepTimeout))
	m.inspection()

	It("is the same after a restart", func(ctx SpecContext) { m.passChecksAfterRestart(ctx) }, SpecTimeout(stepTimeout))
})

func runtimeIs(name string) []check {
	return []check{{"the container runtime is " + name, client + "get node " + hostname + " -o jsonpath={.status.nodeInfo.containerRuntimeVersion} | grep -q ^" + name + "://"}}
}

const (
	aiokube = "aiokube"
	kubelet = "kubectl --kubeconfig=/var/lib/kubelet/kubeconfig "
)

var allInOne = []check{
	{"the installation is complete", "test -e /var/lib/sno/installed && ! systemctl is-active --quiet aiokube.service"},
	{"certificates are renewed in time", "systemctl is-active --quiet sno-rotate.timer"},
	// R-AIO-8
	{"no name of the cluster can be resolved", "! getent hosts api-int.edge.example.com && ! getent hosts api.edge.example.com"},
	{"no client on the node resolves a name", `! grep --recursive --no-filename 'server: ' /etc/kubernetes/static-pod-resources/kube-controller-manager-pod-* ` +
		`/etc/kubernetes/static-pod-resources/kube-scheduler-pod-* /var/lib/kubelet/kubeconfig | grep -v 'server: https://localhost:6443$'`},
	{"kube-controller-manager and kube-scheduler lead", `test "$(` + client + `get leases --namespace=kube-system kube-controller-manager kube-scheduler ` +
		`-o jsonpath='{range .items[*]}{.spec.holderIdentity}{"\n"}{end}' | cut -d_ -f1)" = "` + hostname + "\n" + hostname + `"`},
	// R-AIO-9
	{"the kubelet is the node", `test "$(` + kubelet + `auth whoami -o jsonpath='{.status.userInfo.username} {.status.userInfo.groups}')" = ` +
		`'system:node:` + hostname + ` ["system:nodes","system:authenticated"]'`},
	{"the kubelet has the rights of a node", kubelet + `get node ` + hostname + ` && ` + kubelet + `get secret --namespace=openshift-etcd etcd-signer 2>&1 | ` +
		`grep -q 'no relationship found between node'`},
	{"the kubelet has only used the identities of the node and of the bootstrapper", `test "$(grep -h '"userAgent":"kubelet/' /var/log/kube-apiserver/audit*.log | ` +
		`grep -v '"code":40[13]' | grep -o '"user":{"username":"[^"]*"' | sort -u | cut -d'"' -f6 | tr '\n' ' ')" = ` +
		`'system:node:` + hostname + ` system:serviceaccount:openshift-machine-config-operator:node-bootstrapper '`},
}

// noDNS configures a DNS server that does not exist.
const noDNS = `[Unit]
DefaultDependencies=no
Before=basic.target

[Service]
Type=oneshot
ExecStart=/bin/sh -c 'echo nameserver 192.0.2.53 >/etc/resolv.conf'

[Install]
WantedBy=basic.target
`

// configAllInOne makes the config when the network is known, and copies it to the medium before the machine starts.
func (m *machine) configAllInOne(ctx context.Context, more ...string) {
	m.create(ctx, m.medium("medium", ""))
	m.write(map[string]string{"extra/units/no-dns.service": noDNS})
	runtime := cmp.Or(m.runtime, "containerd") // which has the images
	if runtime != "containerd" {
		m.serveImages(ctx)
	}
	m.snoInstall(ctx, append([]string{"create", "aio-ignition", "--dir", "sno", "--kubernetes-version", kubernetesVersion(), "--program", m.program,
		"--extra", "extra", "--runtime", runtime}, more...)...)
	m.medium("medium", "sno/aio.ign")
}
