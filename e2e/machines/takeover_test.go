// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/nodemachine"
)

// operatorsImage contains the stand-ins of the control plane's operators, for their installer pods.
const operatorsImage = "registry.invalid/sno/static-pod-operators:installed"

// definitions returns the CustomResourceDefinitions that a release payload contains, as paths in module
// github.com/openshift/api.
func definitions() []string {
	return append(embedded.DefaultCRDs(),
		"operator/v1/zz_generated.crd-manifests/0000_20_kube-apiserver_01_kubeapiservers-Default.crd.yaml",
		"operator/v1/zz_generated.crd-manifests/0000_25_kube-controller-manager_01_kubecontrollermanagers.crd.yaml",
		"operator/v1/zz_generated.crd-manifests/0000_25_kube-scheduler_01_kubeschedulers.crd.yaml",
	)
}

// proxy replaces the network operator. Installer pods and controllers reach the API server by a Service.
const proxy = `apiVersion: v1
kind: Pod
metadata: {name: kube-proxy, namespace: kube-system}
spec:
  hostNetwork: true
  priorityClassName: system-node-critical
  containers:
  - name: kube-proxy
    image: registry.k8s.io/kube-proxy:%s
    command: [kube-proxy, --kubeconfig=/certs/secrets/node-kubeconfigs/localhost.kubeconfig, --proxy-mode=nftables,
      --hostname-override=%s, --conntrack-max-per-core=0]
    securityContext: {privileged: true}
    volumeMounts:
    - {name: certs, mountPath: /certs, readOnly: true}
  volumes:
  - name: certs
    hostPath: {path: /etc/kubernetes/static-pod-resources/kube-apiserver-certs}
`

// waits makes post-reboot wait for the operators as in profile openshift, whose images are not available here.
const waits = `[Unit]
Before=post-reboot.service
ConditionPathExists=/etc/kubernetes/bootstrap-configs/sno-install.yaml

[Service]
Type=oneshot
ExecStart=/usr/bin/sed --in-place 's/^profile: kubernetes$/profile: openshift/' /etc/kubernetes/bootstrap-configs/sno-install.yaml

[Install]
WantedBy=multi-user.target
`

// payload writes what a release payload contains and profile kubernetes does not. It builds the operators early.
func (m *machine) payload(ctx context.Context) {
	suite.Must(programs.Build(ctx, programs.StaticPodOperators, GinkgoWriter))
	module := suite.Must(assets.ModuleFolder(ctx, "github.com/openshift/api"))
	files := map[string]string{
		"extra/units/operators.service":                        waits,
		"extra/files/etc/kubernetes/manifests/kube-proxy.yaml": fmt.Sprintf(proxy, version, hostname),
	}
	for _, definition := range definitions() {
		text := suite.Must(os.ReadFile(filepath.Join(module, filepath.FromSlash(definition))))
		files[path.Join("sno/manifests", path.Base(definition))] = string(text)
	}
	m.write(files)
}

// takeOver starts the operators, which take over the control plane and run until the machine is removed.
func (m *machine) takeOver(ctx context.Context) {
	binary := m.loadImage(ctx, programs.StaticPodOperators, operatorsImage)
	m.write(map[string]string{"operators/log": ""})
	Expect(clientcmd.WriteToFile(*m.kubeconfig(adminKubeconfig, m.Machine), m.path("operators/kubeconfig"))).To(Succeed())
	log := suite.Must(os.Create(m.path("operators/log")))
	operators := exec.CommandContext(m.lifetime, binary, "run", "--kubeconfig", m.path("operators/kubeconfig"), "--image", operatorsImage)
	operators.Stdout, operators.Stderr = log, log
	Expect(operators.Start()).To(Succeed())
	go func() {
		err := operators.Wait()
		if m.lifetime.Err() == nil {
			fmt.Fprintf(GinkgoWriter, "The operators have ended: %v; see %s\n", err, log.Name())
		}
		_ = log.Close()
	}()
	// The operators need the label. OpenShift's kubelets get it from their unit, and Kubernetes' kubelets may not set it.
	m.wait(ctx, check{"the node has its roles", client + "label --overwrite node " + hostname + " node-role.kubernetes.io/master= node-role.kubernetes.io/control-plane="})
}

// versionFile has the version of an object from the live system.
const versionFile = "opt/check/resource-version"

// rememberVersion writes the version of an object in the live system for the check of the installed node.
func (m *machine) rememberVersion(ctx context.Context, on *nodemachine.Machine) {
	kube := clientset(m.client(on))
	Eventually(ctx, func(ctx context.Context) error {
		site, err := kube.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(ctx, "site", metav1.GetOptions{})
		if err != nil {
			return err
		}
		m.write(map[string]string{"version": site.ResourceVersion})
		_, err = strconv.ParseUint(site.ResourceVersion, 10, 64)
		return err
	}).Should(Succeed(), "ConfigMap default/site exists in the live system")
}

// takenOver holds when the operators manage the control plane (R-BIP-10, R-BIP-16, R-BIP-17).
func takenOver() []check {
	const operators = "etcd kube-apiserver kube-controller-manager kube-scheduler"
	const writes = `grep -h '"userAgent":"sno-install/' /var/log/kube-apiserver/audit*.log | grep -v '"verb":"\(get\|list\|watch\)"' | ` +
		`grep -o '"objectRef":{"resource":"[^"]*",\("namespace":"[^"]*",\)\?"name":"[^"]*"' | grep -v '"certificatesigningrequests"' | sort -u`
	return []check{
		{"the operators have made one revision of each static pod, and the node has it", `test "$(for o in etcds kubeapiservers kubecontrollermanagers kubeschedulers; do ` +
			client + `get $o.operator.openshift.io cluster -o jsonpath='{.status.latestAvailableRevision}/{.status.nodeStatuses[*].currentRevision} '; done)" = "2/2 2/2 2/2 2/2 "`},
		{"the static pods are those of that revision", `test "$(` + client + `get pods --all-namespaces -l revision -o jsonpath='{.items[*].metadata.labels.revision}')" = "2 2 2 2"`},
		{"the operators are Available, and neither Degraded nor Progressing", `test "$(for o in ` + operators + `; do ` + client + `get clusteroperator $o -o ` +
			`jsonpath='{range .status.conditions[?(@.type!="Upgradeable")]}{.type}={.status} {end}' | tr ' ' '\n' | grep '^\(Available\|Degraded\|Progressing\)=' | sort | tr '\n' ' '; done)" = ` +
			`"$(for o in ` + operators + `; do printf 'Available=True Degraded=False Progressing=False '; done)"`},
		{"an object from the live system has the same version", `test "$(` + client + `get configmap site --namespace=default -o jsonpath='{.metadata.resourceVersion}')" = ` +
			`"$(cat /` + versionFile + `)"`},
		{"a watch from the live system's version has to list anew", client + `get --raw "/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=5&resourceVersion=$(cat /` + versionFile + `)" | ` +
			`grep -q '"code":410'`},
		{"nothing was applied again, and the status was published", `test "$(` + writes + `)" = '"objectRef":{"resource":"configmaps","namespace":"kube-system","name":"bootstrap"
"objectRef":{"resource":"configmaps","namespace":"kube-system","name":"sno-install"'`},
	}
}
