// SPDX-License-Identifier: Apache-2.0

package installing

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/joining"
	"github.com/solonode/sno/e2e/machineconfigserver"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/nodemachine"
)

const (
	clientSigner  = certificatesv1.KubeAPIServerClientKubeletSignerName
	servingSigner = certificatesv1.KubeletServingSignerName

	workerRole = "node-role.kubernetes.io/worker"

	workerPod = "worker"
)

// joiner adds the worker: a real kubelet requests its certificates, the outside tool approves them with an inventory,
// and hostile requests stay pending.
type joiner struct {
	m            *Machine
	kube         *kubernetes.Clientset
	tool         *joining.Tool
	bootstrapper *kubernetes.Clientset
	// began is when the machine was turned on. Earlier requests are not from it.
	began   time.Time
	request string
	hostile []string
}

// newJoiner builds the outside tool and a kubeconfig with exactly its rights (R-APP-3).
func newJoiner(ctx context.Context, m *Machine) (*joiner, error) {
	config, err := m.client()
	if err != nil {
		return nil, err
	}
	j := &joiner{m: m}
	config.WarningHandler = rest.NoWarnings{} // about security contexts
	if j.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	binary, err := programs.Build(ctx, programs.Approve, m.Config.Progress)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the object
	}
	kubeconfig, err := j.toolKubeconfig(ctx, config)
	if err != nil {
		return nil, err
	}
	j.tool = joining.ToolAt(binary, kubeconfig, m.site.path("worker"))
	secret, err := j.kube.CoreV1().Secrets(machineconfigserver.Namespace).Get(ctx, "node-bootstrapper-kubeconfigs", metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the bootstrapper's kubeconfig: %w", err)
	}
	bootstrapper, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["lb-int.kubeconfig"])
	if err != nil {
		return nil, fmt.Errorf("read the bootstrapper's kubeconfig: %w", err)
	}
	j.bootstrapper, err = j.clientWith(bootstrapper.TLSClientConfig)
	return j, err
}

func (j *joiner) clientWith(credentials rest.TLSClientConfig) (*kubernetes.Clientset, error) {
	admin, err := j.m.client()
	if err != nil {
		return nil, err
	}
	credentials.CAData, credentials.ServerName = admin.CAData, admin.ServerName
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: admin.Host, TLSClientConfig: credentials})
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return kube, nil
}

// toolKubeconfig returns a kubeconfig with the rights of the approver's config/approve.
func (j *joiner) toolKubeconfig(ctx context.Context, config *rest.Config) (string, error) {
	client, err := ctrlclient.New(config, ctrlclient.Options{})
	if err != nil {
		return "", fmt.Errorf("connect: %w", err)
	}
	_, err = j.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: framework.SystemNamespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("make namespace %s: %w", framework.SystemNamespace, err)
	}
	if err := joining.ApplyRights(ctx, client); err != nil {
		return "", err //nolint:wrapcheck // names the object
	}
	account := strings.TrimPrefix(joining.ToolUser, "system:serviceaccount:"+framework.SystemNamespace+":")
	token, err := j.kube.CoreV1().ServiceAccounts(framework.SystemNamespace).CreateToken(ctx, account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](3600)}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("make a token of the outside tool: %w", err)
	}
	kubeconfig, err := j.m.kubeconfig(j.m.node)
	if err != nil {
		return "", err
	}
	for name := range kubeconfig.AuthInfos {
		kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	file := j.m.site.path("worker/approve.kubeconfig")
	return file, clientcmd.WriteToFile(*kubeconfig, file) //nolint:wrapcheck // it names the file
}

// clear removes the machine, the Node, the pod and the requests of an earlier run.
func (j *joiner) clear(ctx context.Context) error {
	config := j.m.Config
	config.Name, config.Network = workerMachine(j.m.Config), j.m.Config.Name
	if err := nodemachine.Delete(ctx, config); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	requests, err := j.requests(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range requests {
		// The requests of the control-plane node have other names.
		if strings.HasPrefix(r.Name, "csr-") && r.node != hostname {
			errs = append(errs, j.kube.CertificatesV1().CertificateSigningRequests().Delete(ctx, r.Name, metav1.DeleteOptions{}))
		}
	}
	errs = append(errs, j.kube.CoreV1().Pods("default").Delete(ctx, workerPod, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}),
		j.kube.CoreV1().Nodes().Delete(ctx, workerName, metav1.DeleteOptions{}))
	return errors.Join(slices.DeleteFunc(errs, apierrors.IsNotFound)...)
}

func (j *joiner) caBundle(ctx context.Context, namespace, name string) (string, error) {
	caBundle, err := j.kube.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read the CA: %w", err)
	}
	return caBundle.Data["ca-bundle.crt"], nil
}

type request struct {
	certificatesv1.CertificateSigningRequest
	node string
}

func (j *joiner) requests(ctx context.Context) ([]request, error) {
	list, err := j.kube.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list requests: %w", err)
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

func (j *joiner) waitForRequest(ctx context.Context, signer string) error {
	return until(ctx, "the kubelet of "+workerName+" requests a certificate of "+signer, func(ctx context.Context) error {
		all, err := j.requests(ctx)
		if err != nil {
			return err
		}
		for _, r := range all {
			if r.node == workerName && r.Spec.SignerName == signer && !r.CreationTimestamp.Time.Before(j.began.Truncate(time.Second)) && !slices.Contains(j.hostile, r.Name) {
				j.request = r.Name
				return nil
			}
		}
		return errNotYet
	})
}

var (
	errNotYet  = errors.New("not yet")
	errOutcome = errors.New("the outside tool reports another outcome")
	errJoined  = errors.New("the Node exists although its request is not approved")
	errRenewed = errors.New("the kubelet has requested another certificate")
	errLogs    = errors.New("the logs are readable without a serving certificate")
)

func (j *joiner) expectOutcomes(ctx context.Context, want map[string]string) error {
	_, outcomes, err := j.tool.RunOnce(ctx)
	if err != nil {
		return err //nolint:wrapcheck // complete
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got := outcomes[name].Outcome + " " + outcomes[name].Reason; got != want[name] {
			errs = append(errs, fmt.Errorf("%w: of %s %q, not %q", errOutcome, name, got, want[name]))
		}
	}
	return errors.Join(errs...)
}

func (j *joiner) inventoryEntry() joining.Entry {
	began := j.began.UTC().Truncate(time.Second)
	return joining.Entry{
		Name: workerName, Addresses: []string{j.m.worker.Address()}, Window: &joining.Window{NotBefore: began, NotAfter: began.Add(time.Hour)},
	}
}

// requestNotInInventory expects the machine's request to stay pending with an inventory of another machine.
func (j *joiner) requestNotInInventory(ctx context.Context) error {
	if err := j.waitForRequest(ctx, clientSigner); err != nil {
		return err
	}
	other := j.inventoryEntry()
	other.Name, other.Addresses = "edge-4", nil
	if err := j.tool.WriteInventory(other); err != nil {
		return err //nolint:wrapcheck // complete
	}
	if err := j.expectOutcomes(ctx, map[string]string{j.request: "pending NotInInventory"}); err != nil {
		return err
	}
	_, err := j.kube.CoreV1().Nodes().Get(ctx, workerName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err == nil:
		return fmt.Errorf("%w: %s", errJoined, workerName)
	default:
		return fmt.Errorf("read node %s: %w", workerName, err)
	}
}

// admit adds the machine to the inventory. A request for a node that is not in it, and one for this node from before
// its window, stay pending.
func (j *joiner) admit(ctx context.Context) error {
	if err := j.tool.WriteInventory(j.inventoryEntry()); err != nil {
		return err //nolint:wrapcheck // complete
	}
	other, err := joining.RequestClientCertificate(ctx, j.bootstrapper, "edge-3")
	if err != nil {
		return err //nolint:wrapcheck // complete
	}
	j.hostile = append(j.hostile, other.Name)
	want := map[string]string{
		j.request: "approved ProvenByInventory", other.Name: "pending NotInInventory",
		"hostile-client-of-another": "pending RequestedBeforeWindow", "hostile-client-that-serves": "pending UsagesWrong", "hostile-serving": "pending RequestorWrong",
	}
	if err := j.expectOutcomes(ctx, want); err != nil {
		return err
	}
	return until(ctx, "node "+workerName+" exists", func(ctx context.Context) error {
		_, err := j.kube.CoreV1().Nodes().Get(ctx, workerName, metav1.GetOptions{})
		return err //nolint:wrapcheck // until wraps it
	})
}

const networkConfig = `{"cniVersion":"0.4.0","name":"sno","plugins":[{"type":"ptp","ipMasq":true,"ipam":{"type":"host-local",
"dataDir":"/run/cni-ipam-state","routes":[{"dst":"0.0.0.0/0"}],"ranges":[[{"subnet":%q}]]}}]}
`

// ready replaces the network operator, which configures the pods' network of a new node, and sets the node's role:
// OpenShift's kubelets get the label from their unit, and Kubernetes' kubelets may not set it.
func (j *joiner) ready(ctx context.Context) error {
	if err := j.m.wait(ctx, check{"the node has its role", client + "label --overwrite node " + workerName + " " + workerRole + "="}); err != nil {
		return err
	}
	var pods string
	if err := until(ctx, "the node has a pod CIDR", func(ctx context.Context) error {
		node, err := j.kube.CoreV1().Nodes().Get(ctx, workerName, metav1.GetOptions{})
		if err == nil && node.Spec.PodCIDR == "" {
			err = errNotYet
		}
		if err != nil {
			return err //nolint:wrapcheck // until wraps it
		}
		pods = node.Spec.PodCIDR
		return nil
	}); err != nil {
		return err
	}
	if err := j.m.worker.Put(ctx, nodemachine.File{
		Path: "etc/cni/net.d/10-sno.conflist", Mode: 0o644, Content: fmt.Appendf(nil, networkConfig, pods),
	}); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	return j.m.wait(ctx, workerReady)
}

// workerReady fails if the node has taints.
var workerReady = check{"the worker is Ready and schedulable", client + `get nodes -l ` + workerRole + `,` + corev1.LabelHostname + `=` + workerName +
	` -o jsonpath='{.items[0].status.conditions[?(@.type=="Ready")].status}/{.items[0].spec.unschedulable}/{.items[0].spec.taints}' | grep -qx True//`}

// runPod runs a pod that writes logs. They cannot be read yet: the kubelet has no serving certificate.
func (j *joiner) runPod(ctx context.Context) error {
	etcd, err := j.kube.CoreV1().Pods("openshift-etcd").Get(ctx, "etcd-"+hostname, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("find an image: %w", err)
	}
	_, err = j.kube.CoreV1().Pods("default").Create(ctx, &corev1.Pod{
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
	if err != nil {
		return fmt.Errorf("make a pod for the worker: %w", err)
	}
	if err := j.m.wait(ctx, check{"the pod runs on the worker", client + `get pod ` + workerPod +
		` -o jsonpath='{.spec.nodeName}/{.status.conditions[?(@.type=="Ready")].status}' | grep -qx ` + workerName + `/True`}); err != nil {
		return err
	}
	return until(ctx, "the kubelet refuses to serve logs", func(ctx context.Context) error {
		_, err := j.log(ctx)
		switch {
		case err == nil:
			return errLogs
		case strings.Contains(err.Error(), "tls: internal error"):
			return nil
		default:
			return err
		}
	})
}

func (j *joiner) log(ctx context.Context) (string, error) {
	stream, err := j.kube.CoreV1().Pods("default").GetLogs(workerPod, &corev1.PodLogOptions{}).Stream(ctx)
	if err != nil {
		return "", err //nolint:wrapcheck // the caller wraps it
	}
	text, err := io.ReadAll(stream)
	return string(text), errors.Join(err, stream.Close())
}

// certify has the serving certificate approved. A serving request with the address of another node and a client request
// for this node stay pending.
func (j *joiner) certify(ctx context.Context) error {
	if err := j.waitForRequest(ctx, servingSigner); err != nil {
		return err
	}
	again, err := joining.RequestClientCertificate(ctx, j.bootstrapper, workerName)
	if err != nil {
		return err //nolint:wrapcheck // complete
	}
	pair, err := j.m.worker.Exec(ctx, "cat", "/var/lib/kubelet/pki/kubelet-client-current.pem")
	if err != nil {
		return err //nolint:wrapcheck // names the object
	}
	itself, err := j.clientWith(rest.TLSClientConfig{CertData: []byte(pair + "\n"), KeyData: []byte(pair + "\n")})
	if err != nil {
		return err
	}
	foreign, err := joining.RequestServingCertificate(ctx, itself, workerName, []string{workerName}, net.ParseIP(j.m.worker.Address()), net.ParseIP(j.m.node.Address()))
	if err != nil {
		return err //nolint:wrapcheck // complete
	}
	j.hostile = append(j.hostile, again.Name, foreign.Name)
	if err := j.expectOutcomes(ctx, map[string]string{j.request: "approved ProvenByInventory", again.Name: "pending NodeExists"}); err != nil {
		return err
	}
	// The address is verified at the kubelet, once that serves with its certificate.
	return until(ctx, "the kubelet serves with its certificate, which does not prove another's address", func(ctx context.Context) error {
		return j.expectOutcomes(ctx, map[string]string{foreign.Name: "pending NamesNotProven"})
	})
}

func (j *joiner) logs(ctx context.Context) error {
	return until(ctx, "the pod's logs can be read", func(ctx context.Context) error {
		text, err := j.log(ctx)
		if err == nil && !strings.Contains(text, "ready to serve client requests") {
			err = errNotYet
		}
		return err
	})
}

// restart restarts the worker. The kubelet has to reuse its certificates.
func (j *joiner) restart(ctx context.Context) error {
	before, err := j.requests(ctx)
	if err != nil {
		return err
	}
	if err := j.m.worker.Reboot(ctx); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	if err := j.m.wait(ctx, check{"the pod runs again", client + `get pod ` + workerPod +
		` -o jsonpath='{.status.containerStatuses[0].restartCount}/{.status.conditions[?(@.type=="Ready")].status}' | grep -qx 1/True`}); err != nil {
		return err
	}
	if err := j.logs(ctx); err != nil {
		return err
	}
	after, err := j.requests(ctx)
	if err == nil && len(after) != len(before) {
		err = fmt.Errorf("%w: %d requests, before the restart %d", errRenewed, len(after), len(before))
	}
	return err
}

func (j *joiner) pending(ctx context.Context) error {
	for _, name := range j.hostile {
		r, err := j.kube.CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read a request: %w", err)
		}
		if len(r.Status.Conditions) > 0 || len(r.Status.Certificate) > 0 {
			return fmt.Errorf("%w: %s has been decided: %v", errOutcome, name, r.Status.Conditions)
		}
	}
	for _, c := range pending() {
		if err := j.m.wait(ctx, c); err != nil {
			return err
		}
	}
	return nil
}
