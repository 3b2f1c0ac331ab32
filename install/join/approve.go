// SPDX-License-Identifier: Apache-2.0

package join

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
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

// lostAfter is the time after which an issued certificate that the kubelet does not have counts as lost, and requests
// that compete as not made by one kubelet in turn.
const lostAfter = 30 * time.Second

// restarted is when the kubelet was restarted, since a power cut had lost the key of its request, which was only in
// memory: after an approval the certificate is useless, and before it the new kubelet's request competes with its own.
// Only requests after the restart count.
type restarted struct {
	seen, since time.Time
}

// Approve approves the requests of this host until its Node is Ready and its kubelet has a serving certificate. It
// approves no request that is not proven to be from this host, and denies none (R-APP-4, U-INS-14). It can be repeated
// after it was killed.
func Approve(ctx context.Context, o Options, p *phase.Progress) error {
	if _, err := o.inventory(o.Since, false, 0); err != nil {
		return err
	}
	var r restarted
	first := true
	return p.Until(ctx, o.Interval, "node "+o.Name, func(ctx context.Context) error {
		err := o.once(ctx, r)
		if o.Restart == nil || !errors.Is(err, ErrNotJoined) {
			return err
		}
		contested := errors.Is(err, errContested)
		if first && !contested {
			first = false
			return errors.Join(err, o.restartWithoutRequest(ctx))
		}
		return errors.Join(err, o.restartAfterLoss(ctx, &r, contested))
	})
}

// restartAfterLoss restarts a kubelet, once, that does not have its issued certificate, or whose requests compete. It
// would wait forever, since its requests were approved, or are not.
func (o Options) restartAfterLoss(ctx context.Context, r *restarted, contested bool) error {
	client, err := o.certificate("client", ClientCertificate)
	if err != nil || client.missing == "" || !r.since.IsZero() {
		return err
	}
	list, err := o.requests(ctx, certificatesv1.KubeAPIServerClientKubeletSignerName)
	if err != nil {
		return err
	}
	lost := contested
	for i := range list {
		csr := &list[i]
		lost = lost || requests.ApprovedFor(csr) == o.Name && len(csr.Status.Certificate) > 0 && csr.CreationTimestamp.After(client.ended)
	}
	switch now := o.Now(); {
	case !lost:
		r.seen = time.Time{}
	case r.seen.IsZero():
		r.seen = now
	case now.Sub(r.seen) >= cmp.Or(o.lostAfter, lostAfter):
		r.since = now.Truncate(time.Second) // times of requests have a resolution of a second
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

// inventory returns the second source of the decision: this host only, which may have one approval more than it had
// before the time from. A node whose client certificate has ended may request one as if it joined.
func (o Options) inventory(from time.Time, rejoin bool, before int) (*inventory.Inventory, error) {
	known, err := inventory.New(inventory.Node{
		Name: o.Name, Addresses: o.Addresses, Rejoin: rejoin, Count: min(before+1, inventory.MaxCount),
		Window: &inventory.Window{NotBefore: from, NotAfter: o.Now().Add(MaxAge)},
	})
	if err != nil {
		return nil, fmt.Errorf("%w: the name and the addresses of the node: %w", phase.ErrInput, err)
	}
	return known, nil
}

func (o Options) once(ctx context.Context, r restarted) error {
	client, err := o.certificate("client", ClientCertificate)
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
	pending, err := o.approve(ctx, client.ended, r.since, node != nil)
	if err != nil && !errors.Is(err, errContested) {
		return err
	}
	contested := err
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
	if contested != nil {
		return fmt.Errorf("%w: %w: %s", ErrNotJoined, contested, missing)
	}
	return fmt.Errorf("%w: %s", ErrNotJoined, missing)
}

// errContested means that more requests of this host are pending than may be approved.
var errContested = errors.New("it is not known which of its requests are its own")

// approve approves what the inventory allows, and returns why other requests of this host are pending. The error is an
// errContested if one of them could be another client's.
func (o Options) approve(ctx context.Context, ended, since time.Time, there bool) (pending []string, err error) {
	nodes := sets.New[string]()
	if there {
		nodes.Insert(o.Name)
	}
	from := slices.MaxFunc([]time.Time{o.Since, ended, since}, time.Time.Compare)
	approvals, before := map[string]int{}, 0
	var lists []certificatesv1.CertificateSigningRequest
	for _, signer := range requests.Signers {
		list, err := o.requests(ctx, signer)
		if err != nil {
			return nil, err
		}
		for i := range list {
			if requests.ApprovedFor(&list[i]) == o.Name {
				approvals[o.Name]++
				if from.After(o.Since) && list[i].CreationTimestamp.Time.Before(from) {
					before++
				}
			}
		}
		lists = append(lists, list...)
	}
	known, err := o.inventory(from, ended.After(o.Since), before)
	if err != nil {
		return nil, err
	}
	stays := func(csr *certificatesv1.CertificateSigningRequest, v requests.Verdict) {
		if v.Node == o.Name && v.Reason != requests.ReasonAlreadyDecided {
			pending = append(pending, csr.Name+": "+v.Message)
		}
	}
	competing := requests.NewCompeting(known, approvals)
	for i := range lists {
		verdict := o.decide(&lists[i], known, nodes, approvals)
		if !verdict.Approve {
			stays(&lists[i], verdict)
		} else if dropped := competing.Add(requests.Candidate{Request: &lists[i], Verdict: verdict}); dropped != nil {
			stays(dropped.Request, dropped.Verdict)
		}
	}
	var contested error
	for _, c := range competing.Candidates() {
		if verdict := competing.Contest(c.Verdict); !verdict.Approve {
			stays(c.Request, verdict)
			contested = errContested
			continue
		}
		if err := o.write(ctx, c.Request, c.Verdict); err != nil {
			return nil, err
		}
		competing.Approved(c.Verdict)
	}
	return pending, contested
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

// Certificates of the kubelet, each with its key, relative to the root.
const (
	ClientCertificate  = "var/lib/kubelet/pki/kubelet-client-current.pem"
	ServingCertificate = "var/lib/kubelet/pki/kubelet-server-current.pem"
)

// clockStep is how far a time server may set a clock back without harm.
const clockStep = 10 * time.Minute

type held struct {
	// missing is why there is no valid certificate; "" if there is one.
	missing string
	// ended is when the certificate ended; zero if it is valid or missing.
	ended time.Time
}

// certificate reads the kubelet's file, since the cluster deletes requests an hour after their approval.
func (o Options) certificate(use, name string) (held, error) {
	path := filepath.Join(o.Root, name)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return held{missing: "the kubelet has no " + use + " certificate (" + path + ")"}, nil
	}
	if err != nil {
		return held{}, fmt.Errorf("read the kubelet's certificate: %w", err)
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		switch {
		case err != nil:
			return held{}, fmt.Errorf("%s: %w", path, err)
		case certificate.Subject.CommonName != "system:node:"+o.Name:
			return held{missing: fmt.Sprintf("%s is the certificate of %q", path, certificate.Subject.CommonName)}, nil
		case o.Now().Add(clockStep).Before(certificate.NotBefore):
			return held{missing: fmt.Sprintf("%s is not valid before %s, since the clock was ahead; remove it and restart the kubelet", path, certificate.NotBefore)}, nil
		case !o.Now().Before(certificate.NotAfter):
			return held{missing: fmt.Sprintf("%s has ended at %s", path, certificate.NotAfter), ended: certificate.NotAfter}, nil
		}
		return held{}, nil
	}
	return held{missing: path + " has no certificate"}, nil
}
