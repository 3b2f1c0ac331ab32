// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coreos/ignition/v2/config/v3_2/types"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/vincent-petithory/dataurl"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/ptr"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/joining"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/nodemachine"
)

const (
	workerName = "edge-2"
	workerRole = "node-role.kubernetes.io/worker"
	workerPod  = "worker"

	clientSigner  = certificatesv1.KubeAPIServerClientKubeletSignerName
	servingSigner = certificatesv1.KubeletServingSignerName

	serverNamespace = "openshift-machine-config-operator"
	serverName      = "machine-config-server"
)

// serverManifest runs the stand-in of the machine-config server on node NODE, with the program in /opt/check, its
// certificate and the configs of pools.
//
//go:embed machine-config-server/manifest.yaml
var serverManifest string

// joiner adds a worker: a real kubelet requests its certificates, the outside tool approves them with an inventory, and
// hostile requests stay pending.
type joiner struct {
	*machine
	kube         *kubernetes.Clientset
	tool         *joining.Tool
	bootstrapper *kubernetes.Clientset
	// began is when the worker was turned on.
	began time.Time
	// request is the last one of the worker's kubelet, and known are those before it and the hostile ones.
	request        string
	known, hostile []string
}

// joinWorker adds a machine on day 2 (R-WRK-1): it boots from worker.ign, is approved from an inventory (R-APP-2), runs
// pods, and renews its certificate (R-APP-1, R-APP-4).
func joinWorker(m *machine) {
	j := &joiner{machine: m}
	limit := SpecTimeout(stepTimeout)
	It("serves the config of workers with the machine-config server", j.serveConfig, limit)
	It("has the same worker.ign as at the installation", j.createConfig, limit)
	It("boots a machine from it with the config of workers", j.bootWorker, limit)
	It("leaves the machine's request pending while it is not in the inventory", j.requestNotInInventory, limit)
	It("approves its request from the inventory, and no hostile request", j.admit, limit)
	It("has a Ready node then", j.ready, limit)
	It("runs a pod there, whose logs cannot be read without a serving certificate", j.runPod, limit)
	It("approves the serving certificate from the inventory, and no hostile request", j.certify, limit)
	It("reads the pod's logs", j.readLogs, limit)
	It("has both again after a restart of the worker, which ends its pods gracefully, without a new request", j.restartWorker, limit)
	It("has the kubelet renew its serving certificate, which proves its names while the inventory no longer has the node", j.renew, limit)
	It("has not decided the hostile requests", j.leavesHostile, limit)
}

// machineConfigServer adds what an OpenShift cluster has from its start and profile kubernetes does not need: the CA of
// the machine-config server, which outlives the bootstrap phase, and the server's certificate (R-WRK-1), as sno-install
// makes them in profile openshift.
func (m *machine) machineConfigServer(ctx context.Context) {
	m.write(map[string]string{"openshift/install-config.yaml": string(m.read("sno/install-config.yaml"))})
	command := exec.CommandContext(ctx, m.install, "create", "single-node-ignition-config", "--dir", "openshift", "--program-in-image",
		"--release-image", "registry.example.com/release@sha256:"+strings.Repeat("0", 64), "--master-ignition", "https://192.0.2.1/master.ign")
	command.Dir = m.folder
	output, err := command.CombinedOutput() // advice for people, which is wrong here
	Expect(err).NotTo(HaveOccurred(), string(output))
	made := suite.Must(filepath.Glob(m.path("openshift/sno-install-state/manifests/*_machine-config-server-*.yaml")))
	Expect(made).To(HaveLen(3), "the CA, its bundle and the certificate of the machine-config server")
	for _, file := range made {
		content := suite.Must(os.ReadFile(file))
		m.write(map[string]string{filepath.Join("sno/manifests", filepath.Base(file)): string(content)})
	}
}

// serveConfig runs the stand-in of the machine-config server on the control-plane node, with the config of pool worker.
func (j *joiner) serveConfig(ctx context.Context) {
	j.kube = clientset(j.client(j.Machine))
	binary := suite.Must(programs.Build(ctx, programs.MachineConfigServer, GinkgoWriter))
	program := suite.Must(os.ReadFile(binary))
	pools, err := yaml.Marshal(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: serverNamespace, Name: "machine-config-server-pools"},
		Data:       map[string]string{"worker.ign": string(j.pool(ctx))},
	})
	Expect(err).NotTo(HaveOccurred())
	put(ctx, j.Machine, "opt/check/machine-config-server", 0o755, program)
	put(ctx, j.Machine, "opt/check/machine-config-server.yaml", 0o600, []byte(string(pools)+"---\n"+strings.ReplaceAll(serverManifest, "NODE", hostname)))
	j.wait(ctx, check{"the machine-config server is ready", client + "apply --filename=/opt/check/machine-config-server.yaml && " +
		client + "rollout status --timeout=5s --namespace=" + serverNamespace + " daemonset/" + serverName})
}

// pool returns the config of workers: this node's kubelet with a CA file of its own, as workers have no static pods, and
// with the bootstrapper's credentials.
func (j *joiner) pool(ctx context.Context) []byte {
	unit := j.run(ctx, "cat /etc/systemd/system/kubelet.service")
	var kubelet map[string]any
	Expect(yaml.Unmarshal([]byte(j.run(ctx, "cat /etc/kubernetes/kubelet.conf")), &kubelet)).To(Succeed())
	const authorityFile = "/etc/kubernetes/kubelet-ca.crt"
	kubelet["authentication"] = map[string]any{
		"anonymous": map[string]any{"enabled": false}, "webhook": map[string]any{"enabled": true}, "x509": map[string]any{"clientCAFile": authorityFile},
	}
	configuration := suite.Must(yaml.Marshal(kubelet))
	enabled, mode := true, 0o755
	file := func(path string, mode int, content []byte) types.File {
		source := dataurl.EncodeBytes(content)
		return types.File{Node: types.Node{Path: path}, FileEmbedded1: types.FileEmbedded1{Mode: &mode, Contents: types.Resource{Source: &source}}}
	}
	pool, err := json.Marshal(types.Config{
		Ignition: types.Ignition{Version: "3.2.0"},
		Storage: types.Storage{
			Directories: []types.Directory{{Node: types.Node{Path: "/etc/kubernetes/manifests"}, DirectoryEmbedded1: types.DirectoryEmbedded1{Mode: &mode}}},
			Files: []types.File{
				file("/etc/kubernetes/kubelet.conf", 0o644, configuration),
				file("/etc/kubernetes/kubelet.conf.d/10-machine.conf", 0o644, []byte(kubeletDropIn)),
				file(authorityFile, 0o644, []byte(j.caBundle(ctx, "openshift-config-managed", "kube-apiserver-client-ca"))),
				file("/etc/kubernetes/kubeconfig", 0o600, j.bootstrapKubeconfig(ctx)),
			},
		},
		Systemd: types.Systemd{Units: []types.Unit{{Name: "kubelet.service", Enabled: &enabled, Contents: &unit}}},
	})
	Expect(err).NotTo(HaveOccurred())
	return pool
}

// bootstrapKubeconfig returns the credentials with which kubelets request their first certificates.
func (j *joiner) bootstrapKubeconfig(ctx context.Context) []byte {
	secret := suite.Must(j.kube.CoreV1().Secrets(serverNamespace).Get(ctx, "node-bootstrapper-kubeconfigs", metav1.GetOptions{}))
	return secret.Data["lb-int.kubeconfig"]
}

func (j *joiner) caBundle(ctx context.Context, namespace, name string) string {
	bundle := suite.Must(j.kube.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{}))
	return bundle.Data["ca-bundle.crt"]
}

// createConfig makes worker.ign with the CA of the cluster, as on day 2.
func (j *joiner) createConfig(ctx context.Context) {
	j.write(map[string]string{"worker/ca.crt": j.caBundle(ctx, serverNamespace, "machine-config-server-ca")})
	j.snoInstall(ctx, "create", "worker-ignition", "--dir", "worker", "--host", apiInternal, "--ca", "worker/ca.crt")
	Expect(string(j.read("worker/worker.ign"))).To(Equal(string(j.read("openshift/worker.ign"))))
}

// bootWorker boots a machine from it. The config does not contain the hostname, because all workers share it.
func (j *joiner) bootWorker(ctx context.Context) {
	config := j.config
	config.Name, config.Network, config.Hostname, config.Medium = j.config.Name+"-worker", j.config.Name, workerName, j.medium("medium-worker", "worker/worker.ign")
	j.began = time.Now()
	j.worker = suite.Must(nodemachine.Create(ctx, config))
	Expect(j.worker.Start(ctx)).To(Succeed())
	j.wait(ctx, check{"Ignition has fetched the config of workers", client + "logs --namespace=" + serverNamespace + " daemonset/" + serverName +
		" | grep 'Served pool=worker from=" + j.worker.Address() + `:[0-9]* userAgent="\?Ignition/'`})
}

// requestNotInInventory expects the machine's request to stay pending with an inventory of another machine.
func (j *joiner) requestNotInInventory(ctx context.Context) {
	j.prepareTool(ctx)
	j.waitForRequest(ctx, clientSigner)
	other := j.inventoryEntry()
	other.Name, other.Addresses = "edge-4", nil
	j.tool.WriteInventory(other)
	Expect(j.outcomes(ctx)).To(HaveKeyWithValue(j.request, "pending NotInInventory"))
	_, err := j.kube.CoreV1().Nodes().Get(ctx, workerName, metav1.GetOptions{})
	Expect(err).To(Satisfy(apierrors.IsNotFound), "the Node exists although its request is not approved")
}

// prepareTool builds the outside tool and a kubeconfig with exactly its rights (R-APP-3), and connects as the
// bootstrapper.
func (j *joiner) prepareTool(ctx context.Context) {
	binary := suite.Must(programs.Build(ctx, programs.Approve, GinkgoWriter))
	admin := suite.Must(ctrlclient.New(j.client(j.Machine), ctrlclient.Options{}))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: framework.SystemNamespace}}
	Expect(admin.Create(ctx, namespace)).To(Or(Succeed(), Satisfy(apierrors.IsAlreadyExists)))
	joining.ApplyRights(ctx, admin)
	account := strings.TrimPrefix(joining.ToolUser, "system:serviceaccount:"+framework.SystemNamespace+":")
	token, err := j.kube.CoreV1().ServiceAccounts(framework.SystemNamespace).CreateToken(ctx, account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](3600)}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	kubeconfig := j.kubeconfig(adminKubeconfig, j.Machine)
	for name := range kubeconfig.AuthInfos {
		kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	Expect(clientcmd.WriteToFile(*kubeconfig, j.path("worker/approve.kubeconfig"))).To(Succeed())
	j.tool = joining.ToolAt(binary, j.path("worker/approve.kubeconfig"), j.path("worker"))

	bootstrapper := suite.Must(clientcmd.RESTConfigFromKubeConfig(j.bootstrapKubeconfig(ctx)))
	j.bootstrapper = j.clientWith(bootstrapper.TLSClientConfig)
}

func (j *joiner) clientWith(credentials rest.TLSClientConfig) *kubernetes.Clientset {
	admin := j.client(j.Machine)
	credentials.CAData, credentials.ServerName = admin.CAData, admin.ServerName
	return clientset(&rest.Config{Host: admin.Host, TLSClientConfig: credentials})
}

type request struct {
	certificatesv1.CertificateSigningRequest
	node string
}

func (j *joiner) requests(ctx context.Context) ([]request, error) {
	list, err := j.kube.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var all []request
	for _, r := range list.Items {
		block, _ := pem.Decode(r.Spec.Request)
		if block == nil {
			continue
		}
		parsed, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("read request %s: %w", r.Name, err)
		}
		all = append(all, request{r, strings.TrimPrefix(parsed.Subject.CommonName, "system:node:")})
	}
	return all, nil
}

// waitForRequest waits until the worker's kubelet requests a certificate. Earlier requests are not from it.
func (j *joiner) waitForRequest(ctx context.Context, signer string) {
	if j.request != "" {
		j.known = append(j.known, j.request)
	}
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		all, err := j.requests(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		i := slices.IndexFunc(all, func(r request) bool {
			return r.node == workerName && r.Spec.SignerName == signer && !r.CreationTimestamp.Time.Before(j.began.Truncate(time.Second)) && !slices.Contains(slices.Concat(j.known, j.hostile), r.Name)
		})
		g.Expect(i).NotTo(BeNumerically("<", 0))
		j.request = all[i].Name
	}).Should(Succeed(), "the kubelet of %s requests a certificate of %s", workerName, signer)
}

// outcomes runs the outside tool once, and returns what it reports of each request.
func (j *joiner) outcomes(ctx context.Context) (map[string]string, error) {
	_, results, err := j.tool.RunOnce(ctx)
	outcomes := map[string]string{}
	for name, result := range results {
		outcomes[name] = result.Outcome + " " + result.Reason
	}
	return outcomes, err
}

func (j *joiner) inventoryEntry() joining.InventoryEntry {
	began := j.began.UTC().Truncate(time.Second)
	return joining.InventoryEntry{
		Name: workerName, Addresses: []string{j.worker.Address()}, Window: &joining.Window{NotBefore: began, NotAfter: began.Add(time.Hour)},
	}
}

// admit adds the machine to the inventory. A request for a node that is not in it, and one for this node from before
// its window, stay pending.
func (j *joiner) admit(ctx context.Context) {
	j.tool.WriteInventory(j.inventoryEntry())
	other := joining.RequestClientCertificate(ctx, j.bootstrapper, "edge-3")
	j.hostile = append(j.hostile, other.Name)
	Expect(j.outcomes(ctx)).To(And(
		HaveKeyWithValue(j.request, "approved ProvenByInventory"),
		HaveKeyWithValue(other.Name, "pending NotInInventory"),
		HaveKeyWithValue("hostile-client-of-another", "pending RequestedBeforeWindow"),
		HaveKeyWithValue("hostile-client-that-serves", "pending UsagesWrong"),
		HaveKeyWithValue("hostile-serving", "pending RequestorWrong"),
	))
	Eventually(ctx, func(ctx context.Context) error {
		_, err := j.kube.CoreV1().Nodes().Get(ctx, workerName, metav1.GetOptions{})
		return err
	}).Should(Succeed())
}

// networkConfig configures the network of a node's pods with plugins of every image for kind's nodes.
const networkConfig = `{"cniVersion":"0.4.0","name":"sno","plugins":[{"type":"ptp","ipMasq":true,"ipam":{"type":"host-local",
"dataDir":"/run/cni-ipam-state","routes":[{"dst":"0.0.0.0/0"}],"ranges":[[{"subnet":%q}]]}}]}
`

const networkConfigFile = "etc/cni/net.d/10-sno.conflist"

// ready replaces the network operator, which configures the pods' network of a new node, and sets the node's role:
// OpenShift's kubelets get the label from their unit, and Kubernetes' kubelets may not set it.
func (j *joiner) ready(ctx context.Context) {
	j.wait(ctx, check{"the node has its role", client + "label --overwrite node " + workerName + " " + workerRole + "="})
	var pods string
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		node, err := j.kube.CoreV1().Nodes().Get(ctx, workerName, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		pods = node.Spec.PodCIDR
		g.Expect(pods).NotTo(BeEmpty())
	}).Should(Succeed(), "the node has a pod CIDR")
	put(ctx, j.worker, networkConfigFile, 0o644, fmt.Appendf(nil, networkConfig, pods))
	j.wait(ctx, workerReady)
}

// workerReady fails if the node has taints.
var workerReady = check{"the worker is Ready and schedulable", client + `get nodes -l ` + workerRole + `,` + corev1.LabelHostname + `=` + workerName +
	` -o jsonpath='{.items[0].status.conditions[?(@.type=="Ready")].status}/{.items[0].spec.unschedulable}/{.items[0].spec.taints}' | grep -qx True//`}

// runPod runs a pod that writes logs. They cannot be read yet: the kubelet has no serving certificate.
func (j *joiner) runPod(ctx context.Context) {
	j.createPod(ctx)
	Eventually(ctx, func(ctx context.Context) error {
		_, err := j.log(ctx)
		return err
	}).Should(MatchError(ContainSubstring("tls: internal error")), "the kubelet refuses to serve logs")
}

func (j *joiner) createPod(ctx context.Context) {
	etcd := suite.Must(j.kube.CoreV1().Pods("openshift-etcd").Get(ctx, "etcd-"+hostname, metav1.GetOptions{}))
	_, err := j.kube.CoreV1().Pods("default").Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: workerPod},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelHostname: workerName}, TerminationGracePeriodSeconds: ptr.To[int64](1),
			Containers: []corev1.Container{{
				Name: "main", Image: etcd.Spec.Containers[0].Image, Command: []string{"etcd", "--data-dir=/data/etcd"},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
			}},
			Volumes: []corev1.Volume{{Name: "data"}},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	j.wait(ctx, check{"the pod runs on the worker", client + `get pod ` + workerPod +
		` -o jsonpath='{.spec.nodeName}/{.status.conditions[?(@.type=="Ready")].status}' | grep -qx ` + workerName + `/True`})
}

func (j *joiner) log(ctx context.Context) (string, error) {
	stream, err := j.kube.CoreV1().Pods("default").GetLogs(workerPod, &corev1.PodLogOptions{}).Stream(ctx)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(stream)
	return string(text), errors.Join(err, stream.Close())
}

// certify has the serving certificate approved. A serving request with the address of another node and a client request
// for this node stay pending.
func (j *joiner) certify(ctx context.Context) {
	j.waitForRequest(ctx, servingSigner)
	again := joining.RequestClientCertificate(ctx, j.bootstrapper, workerName)
	pair := bytes.TrimSpace([]byte(execute(ctx, j.worker, "cat /var/lib/kubelet/pki/kubelet-client-current.pem")))
	itself := j.clientWith(rest.TLSClientConfig{CertData: append(pair, '\n'), KeyData: append(pair, '\n')})
	foreign := joining.RequestServingCertificate(ctx, itself, workerName, []string{workerName}, net.ParseIP(j.worker.Address()), net.ParseIP(j.Address()))
	j.hostile = append(j.hostile, again.Name, foreign.Name)
	Expect(j.outcomes(ctx)).To(And(HaveKeyWithValue(j.request, "approved ProvenByInventory"), HaveKeyWithValue(again.Name, "pending NodeExists")))
	// The address is verified at the kubelet, once that serves with its certificate.
	Eventually(ctx, j.outcomes).Should(HaveKeyWithValue(foreign.Name, "pending NamesNotProven"), "the kubelet's certificate does not prove another's address")
}

func (j *joiner) readLogs(ctx context.Context) {
	Eventually(ctx, j.log).Should(ContainSubstring("ready to serve client requests"))
}

// restartWorker restarts the worker. The kubelet has to reuse its certificates. It ends pods within their grace periods
// first, and such a pod does not run again: a controller would create another one, as the test does.
func (j *joiner) restartWorker(ctx context.Context) {
	before := suite.Must(j.requests(ctx))
	Expect(j.worker.Reboot(ctx)).To(Succeed())
	j.wait(ctx, check{"the kubelet has ended the pod before the restart", client + `get pod ` + workerPod +
		` -o jsonpath='{.status.phase}/{.status.conditions[?(@.type=="DisruptionTarget")].reason}' | grep -qx ` + string(corev1.PodSucceeded) + "/" + corev1.PodReasonTerminationByKubelet})
	Expect(j.kube.CoreV1().Pods("default").Delete(ctx, workerPod, metav1.DeleteOptions{})).To(Succeed())
	Eventually(ctx, func(ctx context.Context) error {
		_, err := j.kube.CoreV1().Pods("default").Get(ctx, workerPod, metav1.GetOptions{})
		return err
	}).Should(Satisfy(apierrors.IsNotFound))
	j.createPod(ctx)
	j.readLogs(ctx)
	Expect(j.requests(ctx)).To(HaveLen(len(before)), "the kubelet has requested another certificate")
}

// renew replaces the kubelet's certificate by an equal one that has nearly expired.
func (j *joiner) renew(ctx context.Context) {
	j.tool.WriteInventory(joining.InventoryEntry{Name: "edge-4"})
	signer := suite.Must(j.kube.CoreV1().Secrets("openshift-kube-controller-manager").Get(ctx, "csr-signer", metav1.GetOptions{}))
	authority, key := suite.Must(cert.ParseCertsPEM(signer.Data[corev1.TLSCertKey])), suite.Must(keyutil.ParsePrivateKeyPEM(signer.Data[corev1.TLSPrivateKeyKey]))
	aged, file, err := age(suite.Must(j.servingCertificate(ctx)), authority[0], key)
	Expect(err).NotTo(HaveOccurred())
	put(ctx, j.worker, "var/lib/kubelet/pki/kubelet-server-aged.pem", 0o600, file)
	execute(ctx, j.worker, "ln --symbolic --force kubelet-server-aged.pem /var/lib/kubelet/pki/kubelet-server-current.pem && systemctl restart kubelet")
	j.waitForRequest(ctx, servingSigner)
	Eventually(ctx, j.servingCertificate).Should(Satisfy(aged.Equal), "the kubelet serves with the old certificate")
	Eventually(ctx, j.outcomes).Should(HaveKeyWithValue(j.request, "approved ProvenByCertificate"))
	Eventually(ctx, j.servingCertificate).ShouldNot(Satisfy(aged.Equal), "the kubelet serves with a new certificate")
	j.readLogs(ctx)
}

// servingCertificate returns the kubelet's serving certificate, verified for the node's name.
func (j *joiner) servingCertificate(ctx context.Context) (*x509.Certificate, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(j.caBundle(ctx, "openshift-config-managed", "csr-controller-ca")))
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: workerName, MinVersion: tls.VersionTLS12}}
	connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(j.worker.Address(), "10250"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// A kubelet renews its certificate at nine tenths of the validity at the latest.
const agedSince, agedUntil = -time.Hour, 5 * time.Minute

// age makes a certificate for the same names, with a new key, that has nearly expired, and the kubelet's file with
// both.
func age(current, authority *x509.Certificate, signer crypto.PrivateKey) (*x509.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: current.Subject, DNSNames: current.DNSNames, IPAddresses: current.IPAddresses,
		NotBefore: time.Now().Add(agedSince), NotAfter: time.Now().Add(agedUntil), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, authority, key.Public(), signer)
	if err != nil {
		return nil, nil, err
	}
	aged, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	secret, err := keyutil.MarshalPrivateKeyToPEM(key)
	return aged, append(pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), secret...), err
}

func (j *joiner) leavesHostile(ctx context.Context) {
	for _, name := range j.hostile {
		r := suite.Must(j.kube.CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{}))
		Expect(r.Status.Conditions).To(BeEmpty(), name)
		Expect(r.Status.Certificate).To(BeEmpty(), name)
	}
	j.wait(ctx, pending()...)
}
