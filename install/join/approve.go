// SPDX-License-Identifier: Apache-2.0

package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"

	"github.com/solonode/sno/approver/inventory"
	"github.com/solonode/sno/approver/requests"
	"github.com/solonode/sno/install/phase"
)

const (
	// FieldManager is the field manager of approvals.
	FieldManager = "sno.solonode.github.io/install"
	// ApprovalReason is the reason of the condition Approved.
	ApprovalReason = "SnoInstallApprove"
	// MaxAge is the maximum age of a request. The cluster deletes pending requests after a day, and a kubelet that was off
	// makes no other request before.
	MaxAge = 24 * time.Hour
)

// ErrNotJoined is in the error of Approve if the node has not joined when the context ends.
var ErrNotJoined = errors.New("the node has not joined")

// Options of Approve.
type Options struct {
	Client kubernetes.Interface
	Root   string
	// Name and Addresses are those of the host. A serving certificate may have no others.
	Name      string
	Addresses []netip.Addr
	// Since is the time of the Ignition config: earlier requests are not from this host.
	Since time.Time
	// Interval is the time between two reads of the requests.
	Interval time.Duration
	Now      func() time.Time
	// Restart restarts the kubelet; nil does nothing.
	Restart func(context.Context) error

	// lostAfter overrides the constant in tests.
	lostAfter time.Duration
}

// lostAfter is the time after which an issued certificate that the kubelet does not have counts as lost.
const lostAfter = 30 * time.Second

// lost is the state of a client certificate that was issued and lost in a power cut, since its key was only in memory.
type lost struct {
	// seen is when the missing certificate was first observed, and since the time of the kubelet's restart.
	seen, since time.Time
	// approved is the number of requests that were approved before.
	approved int
}

// Approve approves the requests of this host until its Node is Ready and its kubelet has a serving certificate. It
// approves no request that is not proven to be from this host, and denies none (R-APP-4, U-INS-14). It can be repeated
// after it was killed.
func Approve(ctx context.Context, o Options, p *phase.Progress) error {
	if _, err := o.inventory(time.Time{}, lost{}); err != nil {
		return err
	}
	var l lost
	restarted := false
	return p.Until(ctx, o.Interval, "node "+o.Name, func(ctx context.Context) error {
		err := o.once(ctx, l)
		if o.Restart == nil || !errors.Is(err, ErrNotJoined) {
			return err
		}
		if !restarted {
			restarted = true
			return errors.Join(err, o.restartWithoutRequest(ctx))
		}
		return errors.Join(err, o.restartAfterLoss(ctx, &l))
	})
}

// restartAfterLoss restarts a kubelet, once, that does not have its issued certificate. It would wait forever, since
// all requests that the inventory allows were approved. Only requests after the restart count.
func (o Options) restartAfterLoss(ctx context.Context, l *lost) error {
	client, err := o.certificate("client", ClientCertificate)
	if err != nil || client.missing == "" || !client.ended.IsZero() || !l.since.IsZero() {
		return err
	}
	list, err := o.requests(ctx, certificatesv1.KubeAPIServerClientKubeletSignerName)
	if err != nil {
		return err
	}
	approved, issued := 0, false
	for i := range list {
		if requests.ApprovedFor(&list[i]) == o.Name {
			approved++
			issued = issued || len(list[i].Status.Certificate) > 0
		}
	}
	switch now := o.Now(); {
	case !issued:
		l.seen = time.Time{}
	case l.seen.IsZero():
		l.seen = now
	case now.Sub(l.seen) >= cmp.Or(o.lostAfter, lostAfter):
		// Times of requests have a resolution of a second.
		l.since, l.approved = now.Truncate(time.Second), approved
		return o.Restart(ctx)
	}
	return nil
}

// restartWithoutRequest restarts a kubelet that has no valid client certificate and no request for one yet. While there
// was no API server its requests failed, and it waits up to half a minute before it tries again.
func (o Options) restartWithoutRequest(ctx context.Context) error {
	client, err := o.certificate("client", ClientCertificate)
	if err != nil || client.missing == "" {
		return err
	}
	list, err := o.requests(ctx, certificatesv1.KubeAPIServerClientKubeletSignerName)
	if err != nil {
		return err
	}
	for i := range list {
		if requests.ApprovedFor(&list[i]) == o.Name && list[i].CreationTimestamp.After(client.ended) {
			return nil
		}
	}
	return o.Restart(ctx)
}

func (o Options) requests(ctx context.Context, signer string) ([]certificatesv1.CertificateSigningRequest, error) {
	list, err := o.Client.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{FieldSelector: "spec.signerName=" + signer})
	if err != nil {
		return nil, fmt.Errorf("read the certificate requests for %s: %w", signer, err)
	}
	return list.Items, nil
}

// inventory returns the second source of the decision: this host only. A node whose client certificate has ended may
// request one as if it joined, and one whose certificate was lost may request one more.
func (o Options) inventory(ended time.Time, l lost) (*inventory.Inventory, error) {
	host := inventory.Node{Name: o.Name, Addresses: o.Addresses, Window: &inventory.Window{NotBefore: o.Since, NotAfter: o.Now().Add(MaxAge)}}
	if ended.After(o.Since) {
		host.Rejoin, host.Count, host.Window.NotBefore = true, inventory.MaxCount, ended
	} else if l.since.After(o.Since) {
		host.Count, host.Window.NotBefore = min(l.approved+1, inventory.MaxCount), l.since
	}
	known, err := inventory.New(host)
	if err != nil {
		return nil, fmt.Errorf("%w: the name and the addresses of the node: %w", phase.ErrInput, err)
	}
	return known, nil
}

func (o Options) once(ctx context.Context, l lost) error {
	client, err := o.certificate("client", ClientCertificate)
	if err != nil {
		return err
	}
	known, err := o.inventory(client.ended, l)
	if err != nil {
		return err
	}
	node, err := o.Client.CoreV1().Nodes().Get(ctx, o.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		node = nil
	case err != nil:
		return fmt.Errorf("read Node %s: %w", o.Name, err)
	}
	pending, err := o.approve(ctx, known, node != nil)
	if err != nil {
		return err
	}
	var missing string
	switch {
	case node == nil:
		missing = "there is no such Node"
	case !ready(node):
		missing = "the Node is not Ready"
	case !client.ended.IsZero():
		missing = client.missing
	default:
		serving, err := o.certificate("serving", ServingCertificate)
		if err != nil {
			return err
		}
		missing = serving.missing
	}
	if missing == "" {
		return nil
	}
	if len(pending) > 0 {
		missing += "; requests that are not approved: " + strings.Join(pending, "; ")
	}
	return fmt.Errorf("%w: %s", ErrNotJoined, missing)
}

func (o Options) approve(ctx context.Context, known *inventory.Inventory, there bool) ([]string, error) {
	nodes := sets.New[string]()
	if there {
		nodes.Insert(o.Name)
	}
	var pending []string
	for _, signer := range []string{certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName} {
		list, err := o.requests(ctx, signer)
		if err != nil {
			return nil, err
		}
		approvals := map[string]int{}
		for i := range list {
			if name := requests.ApprovedFor(&list[i]); name != "" {
				approvals[name]++
			}
		}
		for i := range list {
			csr := &list[i]
			verdict := o.decide(csr, known, nodes, approvals)
			if !verdict.Approve {
				if verdict.Node == o.Name && verdict.Reason != requests.ReasonAlreadyDecided {
					pending = append(pending, csr.Name+": "+verdict.Message)
				}
				continue
			}
			if err := o.write(ctx, csr, verdict); err != nil {
				return nil, err
			}
			approvals[verdict.Node]++
		}
	}
	return pending, nil
}

func (o Options) decide(csr *certificatesv1.CertificateSigningRequest, known *inventory.Inventory, nodes sets.Set[string], approvals map[string]int) requests.Verdict {
	return requests.Decide(requests.Inputs{
		Request: csr, Nodes: nodes, Inventory: known, Approvals: approvals, Now: o.Now(), Policy: requests.Policy{MaxAge: MaxAge},
	})
}

// write approves a request with the resource version that was read: if another client has changed it, the next run
// reads it again.
func (o Options) write(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, because requests.Verdict) error {
	intent := csr.DeepCopy()
	intent.Status.Conditions = append(intent.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: ApprovalReason,
		Message: "Approved by the installer on the host itself: " + because.Reason,
	})
	_, err := o.Client.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, csr.Name, intent, metav1.UpdateOptions{FieldManager: FieldManager})
	if err != nil {
		return fmt.Errorf("approve the certificate request %s: %w", csr.Name, err)
	}
	return nil
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
