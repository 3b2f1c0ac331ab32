// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/solonode/sno/e2e/bench"
	"github.com/solonode/sno/e2e/joining"
	"github.com/solonode/sno/e2e/kindtarget"
)

// Join tests R-APP-1 to R-APP-4 with a real kubelet.
var Join = kindtarget.Experiment{
	Name: "join", SecondCluster: true, Run: join,
	Description: "a node joins, serves and renews with approvals of the outside tool only, and hostile requests stay pending",
}

// Both signers, as requests name them.
const (
	clientSigner  = certificatesv1.KubeAPIServerClientKubeletSignerName
	servingSigner = certificatesv1.KubeletServingSignerName
)

var (
	errEarly    = errors.New("a client other than the outside tool approves certificates of nodes")
	errServes   = errors.New("the kubelet does not serve correctly")
	errJoinTime = errors.New("the node took too long to join")
)

const (
	joinNamespace = "sno-experiment-join"
	hello         = "hello from a node that has joined"
	joinBound     = time.Minute
)

// joiner is a worker that leaves the cluster and joins again.
type joiner struct {
	*kindtarget.Env
	before  *corev1.Node
	node    string
	address string
	// authority is a file with the CA of kubelets.
	authority string
	tool      *joining.Tool
	// token is the node's bootstrap token, which unknownClient has as well.
	token         string
	unknownClient *kubernetes.Clientset
	// known are earlier requests, and those of the node that have been processed.
	known    []string
	hostile  []string
	approved []string
}

func join(ctx context.Context, e *kindtarget.Env) (err error) {
	j, err := newJoiner(ctx, e)
	if err != nil {
		return err
	}
	automatic, err := j.withdrawAutomatic(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.restoreAutomatic(ctx, automatic), j.forget(ctx)) }()
	if err := j.bootstrapToken(ctx); err != nil {
		return err
	}
	if err := j.leave(ctx); err != nil {
		return err
	}
	took, err := j.admitted(ctx)
	if err != nil {
		return err
	}
	err = inNamespace(ctx, e, joinNamespace, func() error {
		pod := scriptPod(joinNamespace, "hello", "echo "+hello+"; exec sleep infinity", 0)
		pod.Spec.NodeName = j.node
		if err := e.Cluster.Client().Create(ctx, pod); err != nil {
			return fmt.Errorf("make a pod with a log: %w", err)
		}
		if err := j.serves(ctx, pod); err != nil {
			return err
		}
		return j.renews(ctx, pod)
	})
	if err != nil {
		return err
	}
	if err := j.stillPending(ctx); err != nil {
		return err
	}
	return errors.Join(j.check(took), record(e, "join", j.figures(took)))
}

func (j *joiner) check(took time.Duration) error {
	if took > joinBound {
		return fmt.Errorf("%w: %s, bound %s", errJoinTime, seconds(took), seconds(joinBound))
	}
	return nil
}

func (j *joiner) figures(took time.Duration) []bench.Row {
	return []bench.Row{
		{
			What: "A real kubelet joins, from kubeadm join to Ready, approved by the outside tool", Measured: seconds(took),
			Bound: "max " + seconds(joinBound), Compared: "-", Held: took <= joinBound,
		}, {
			What:     "Requests of a node that joined and renewed, and hostile requests next to them",
			Measured: fmt.Sprintf("%d approved, %d left pending", len(j.approved), len(j.hostile)), Bound: "no hostile one", Compared: "-", Held: true,
		},
	}
}

func newJoiner(ctx context.Context, e *kindtarget.Env) (*joiner, error) {
	worker, err := lastWorker(ctx, e)
	if err != nil {
		return nil, err
	}
	j := &joiner{Env: e, before: worker, node: worker.Name, authority: filepath.Join(e.Cluster.Dir(), "kubelet-ca.pem")}
	if j.address, err = e.Kind.Address(ctx, j.node); err != nil {
		return nil, err
	}
	// kubeadm has one CA for everything.
	if err := os.WriteFile(j.authority, e.Cluster.RESTConfig().CAData, 0o600); err != nil {
		return nil, fmt.Errorf("write the CA of kubelets: %w", err)
	}
	if j.tool, err = joining.NewTool(ctx, e.Cluster, e.Progress); err != nil {
		return nil, err
	}
	all, err := j.requests().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list requests: %w", err)
	}
	for i := range all.Items {
		j.known = append(j.known, all.Items[i].Name)
	}
	return j, j.tool.WriteInventory(joining.Entry{Name: j.node, Addresses: []string{j.address}, Window: joining.OpenWindow()})
}

// admitted joins the node, and returns how long that took. The node's request waits for the tool's approval, and a
// hostile one stays pending.
func (j *joiner) admitted(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	joined := make(chan error, 1)
	joining, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { joined <- j.kubeadmJoin(joining) }()
	request, err := j.waitForRequest(ctx, clientSigner)
	if err != nil {
		cancel()
		return 0, errors.Join(err, <-joined)
	}
	if err := j.admit(ctx, request); err != nil {
		cancel()
		return 0, errors.Join(err, <-joined)
	}
	if err := j.Kind.WaitForNodes(ctx, j.node); err != nil {
		cancel()
		return 0, errors.Join(err, <-joined)
	}
	took := time.Since(began)
	// The rest of kubeadm join is not needed.
	cancel()
	<-joined
	return took, j.restoreRoles(ctx)
}

func (j *joiner) admit(ctx context.Context, request string) error {
	if err := j.onlyTool(ctx, request); err != nil {
		return err
	}
	unknownClient, err := joining.RequestClientCertificate(ctx, j.unknownClient, "unknown")
	if err != nil {
		return err
	}
	return j.approve(ctx, request, map[string]string{unknownClient.Name: "pending NotInInventory"}, "approved ProvenByInventory")
}

// serves has the tool approve the serving certificate, but neither one with another address nor a second client
// certificate for the name. The pod's log can be read only afterwards.
func (j *joiner) serves(ctx context.Context, pod *corev1.Pod) error {
	request, err := j.waitForRequest(ctx, servingSigner)
	if err != nil {
		return err
	}
	if err := running(ctx, j.Env, pod); err != nil {
		return err
	}
	if _, err := podLog(ctx, j.Env, pod); err == nil || !strings.Contains(err.Error(), "tls") {
		return fmt.Errorf("%w: before the approval of its certificate, reading a log returns %w", errServes, err)
	}
	if err := j.onlyTool(ctx, request); err != nil {
		return err
	}
	second, err := joining.RequestClientCertificate(ctx, j.unknownClient, j.node)
	if err != nil {
		return err
	}
	itself, err := j.itself(ctx)
	if err != nil {
		return err
	}
	foreign, err := joining.RequestServingCertificate(ctx, itself, j.node, []string{j.node}, net.ParseIP(j.address), net.IPv4(192, 0, 2, 1))
	if err != nil {
		return err
	}
	// Its outcome depends on whether the kubelet has a certificate in use yet.
	j.hostile, j.known = append(j.hostile, foreign.Name), append(j.known, foreign.Name)
	if err := j.approve(ctx, request, map[string]string{second.Name: "pending NodeExists"}, "approved ProvenByInventory"); err != nil {
		return err
	}
	if err := j.served(ctx, pod, nil); err != nil {
		return err
	}
	// The kubelet's certificate does not prove the other address.
	return j.expectOutcomes(ctx, map[string]string{foreign.Name: "pending NamesNotProven"})
}

// renews has the kubelet request its next serving certificate, while the inventory no longer has the node.
func (j *joiner) renews(ctx context.Context, pod *corev1.Pod) error {
	if err := j.tool.WriteInventory(joining.Entry{Name: "another-node"}); err != nil {
		return err
	}
	aged, err := j.age(ctx)
	if err != nil {
		return err
	}
	request, err := j.waitForRequest(ctx, servingSigner)
	if err != nil {
		return err
	}
	if err := j.served(ctx, pod, nil); err != nil {
		return err
	}
	if err := j.approve(ctx, request, nil, "approved ProvenByCertificate"); err != nil {
		return err
	}
	return j.served(ctx, pod, aged)
}

// approve runs the tool and expects it to approve the node's request, and these outcomes for the hostile ones.
func (j *joiner) approve(ctx context.Context, request string, hostile map[string]string, own string) error {
	want := map[string]string{request: own}
	for name, outcome := range hostile {
		want[name] = outcome
		j.hostile, j.known = append(j.hostile, name), append(j.known, name)
	}
	if err := j.expectOutcomes(ctx, want); err != nil {
		return err
	}
	j.approved = append(j.approved, request)
	return nil
}

func (j *joiner) expectOutcomes(ctx context.Context, want map[string]string) error {
	_, outcomes, err := j.tool.RunOnce(ctx, "--bootstrap-tokens", "--kubelet-ca="+j.authority)
	if err != nil {
		return err
	}
	return differs(want, outcomes)
}

func (j *joiner) stillPending(ctx context.Context) error {
	for _, name := range j.hostile {
		if err := j.pending(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (j *joiner) pending(ctx context.Context, name string) error {
	request, err := j.requests().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read a request: %w", err)
	}
	if len(request.Status.Conditions) > 0 || len(request.Status.Certificate) > 0 {
		return fmt.Errorf("%w: %s of %s has been decided: %v", errEarly, request.Spec.SignerName, request.Spec.Username, request.Status.Conditions)
	}
	return nil
}

func (j *joiner) clientWith(credentials rest.Config) (*kubernetes.Clientset, error) {
	admin := j.Cluster.RESTConfig()
	credentials.Host, credentials.CAData, credentials.QPS = admin.Host, admin.CAData, admin.QPS
	kube, err := kubernetes.NewForConfig(&credentials)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return kube, nil
}
