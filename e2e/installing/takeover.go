package installing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/nodemachine"
)

// operatorsImage has the stand-ins of the control plane's operators, for their installer pods.
const operatorsImage = "registry.invalid/sno/static-pod-operators:installed"

// definitions are those of what the operators read and write, which a release payload brings, as paths inside module github.com/openshift/api.
func definitions() []string {
	return append(embedded.DefaultCRDs(),
		"operator/v1/zz_generated.crd-manifests/0000_20_kube-apiserver_01_kubeapiservers-Default.crd.yaml",
		"operator/v1/zz_generated.crd-manifests/0000_25_kube-controller-manager_01_kubecontrollermanagers.crd.yaml",
		"operator/v1/zz_generated.crd-manifests/0000_25_kube-scheduler_01_kubeschedulers.crd.yaml",
	)
}

// proxy plays the network operator, which brings services. Installer pods and controllers reach the API server by one.
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

// waits has post-reboot wait for the operators, as it does in profile openshift, whose images nobody here has.
const waits = `[Unit]
Before=post-reboot.service
ConditionPathExists=/etc/kubernetes/bootstrap-configs/sno-install.yaml

[Service]
Type=oneshot
ExecStart=/usr/bin/sed --in-place 's/^profile: kubernetes$/profile: openshift/' /etc/kubernetes/bootstrap-configs/sno-install.yaml

[Install]
WantedBy=multi-user.target
`

// payload lays what a release payload has and profile kubernetes does not. It builds the operators before anybody waits for them.
func (s *site) payload(ctx context.Context, version string) error {
	if _, err := programs.Build(ctx, programs.StaticPodOperators, s.progress); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	module, err := assets.ModuleFolder(ctx, "github.com/openshift/api")
	if err != nil {
		return fmt.Errorf("find the CustomResourceDefinitions: %w", err)
	}
	all := map[string]string{
		"extra/units/operators.service":                        waits,
		"extra/files/etc/kubernetes/manifests/kube-proxy.yaml": fmt.Sprintf(proxy, version, hostname),
	}
	for _, definition := range definitions() {
		text, err := os.ReadFile(filepath.Join(module, filepath.FromSlash(definition)))
		if err != nil {
			return fmt.Errorf("read a CustomResourceDefinition: %w", err)
		}
		all[path.Join("sno/manifests", path.Base(definition))] = string(text)
	}
	return s.write(all)
}

// takeOver has the operators take the control plane over, as soon as there is one. They go on until the context ends.
func (m *Machine) takeOver(ctx, running context.Context) error {
	binary, err := m.bring(ctx, programs.StaticPodOperators, operatorsImage)
	if err != nil {
		return err
	}
	kubeconfig := m.site.path("operators/kubeconfig")
	if err := errors.Join(os.MkdirAll(filepath.Dir(kubeconfig), 0o755), m.WriteKubeconfig(kubeconfig)); err != nil {
		return fmt.Errorf("prepare the operators: %w", err)
	}
	said, err := os.Create(m.site.path("operators/log"))
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	operators := exec.CommandContext(running, binary, "run", "--kubeconfig", kubeconfig, "--image", operatorsImage)
	operators.Stdout, operators.Stderr = said, said
	if err := operators.Start(); err != nil {
		return fmt.Errorf("start the operators: %w", errors.Join(err, said.Close()))
	}
	go func() {
		err := operators.Wait()
		if running.Err() == nil {
			m.say("the operators have ended: %v; see %s", err, said.Name())
		}
		_ = said.Close()
	}()
	// The operators look for it. OpenShift's kubelets take it from their unit, and Kubernetes' refuse to.
	return m.wait(ctx, check{"the node has its roles", client + "label --overwrite node " + hostname + " node-role.kubernetes.io/master= node-role.kubernetes.io/control-plane="})
}

// version of an object that was applied in the live system, where checks find it.
const versionFile = "opt/check/resource-version"

// seen reads, in the live system, the version of an object that was applied there.
func (m *Machine) seen(ctx context.Context, on *nodemachine.Machine) error {
	config, err := m.clientOf(on)
	if err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	return until(ctx, "ConfigMap default/site is there", func(ctx context.Context) error {
		site, err := kube.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(ctx, "site", metav1.GetOptions{})
		if err != nil {
			return err //nolint:wrapcheck // until says of what
		}
		if _, err := strconv.ParseUint(site.ResourceVersion, 10, 64); err != nil {
			return fmt.Errorf("read its version: %w", err)
		}
		return m.site.write(map[string]string{"version": site.ResourceVersion})
	})
}

// takenOver holds when the operators have the control plane (R-BIP-10, R-BIP-16, R-BIP-17).
func takenOver() []check {
	const operators = "etcd kube-apiserver kube-controller-manager kube-scheduler"
	const writes = `grep -h '"userAgent":"sno-install/' /var/log/kube-apiserver/audit*.log | grep -v '"verb":"\(get\|list\|watch\)"' | ` +
		`grep -o '"objectRef":{"resource":"[^"]*",\("namespace":"[^"]*",\)\?"name":"[^"]*"' | grep -v '"certificatesigningrequests"' | sort -u`
	return []check{
		{"the operators have made one revision of each static pod, and the node has it", `test "$(for o in etcds kubeapiservers kubecontrollermanagers kubeschedulers; do ` +
			client + `get $o.operator.openshift.io cluster -o jsonpath='{.status.latestAvailableRevision}/{.status.nodeStatuses[*].currentRevision} '; done)" = "2/2 2/2 2/2 2/2 "`},
		{"the static pods are those of that revision", `test "$(` + client + `get pods --all-namespaces -l revision -o jsonpath='{.items[*].metadata.labels.revision}')" = "2 2 2 2"`},
		{"the operators are at rest", `test "$(for o in ` + operators + `; do ` + client + `get clusteroperator $o -o ` +
			`jsonpath='{range .status.conditions[?(@.type!="Upgradeable")]}{.type}={.status} {end}' | tr ' ' '\n' | grep '^\(Available\|Degraded\|Progressing\)=' | sort | tr '\n' ' '; done)" = ` +
			`"$(for o in ` + operators + `; do printf 'Available=True Degraded=False Progressing=False '; done)"`},
		{"an object of before has the version that it had", `test "$(` + client + `get configmap site --namespace=default -o jsonpath='{.metadata.resourceVersion}')" = ` +
			`"$(cat /` + versionFile + `)"`},
		{"who has watched before has to list anew", client + `get --raw "/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=5&resourceVersion=$(cat /` + versionFile + `)" | ` +
			`grep -q '"code":410'`},
		{"nothing was applied again", `test "$(` + writes + `)" = '"objectRef":{"resource":"configmaps","namespace":"kube-system","name":"bootstrap"'`},
	}
}
