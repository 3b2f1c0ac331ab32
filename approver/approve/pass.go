// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/approver/requests"
)

const maxAttempts = 3 // to approve a request that another client modifies meanwhile

// limit bounds the approvals within any window, in case the inventory or this module has an error.
type limit struct {
	approvals int
	window    time.Duration
}

// wait returns how long the next approval has to wait.
func (l limit) wait(spent []time.Time, now time.Time) time.Duration {
	within := slices.DeleteFunc(slices.Clone(spent), func(at time.Time) bool { return now.Sub(at) >= l.window })
	if len(within) < l.approvals {
		return 0
	}
	slices.SortFunc(within, time.Time.Compare)
	return within[len(within)-l.approvals].Add(l.window).Sub(now)
}

// pass checks every request without further reads first, and then reads nodes and calls kubelets for the candidates
// only.
type pass struct {
	*tool
	report     report
	summary    summary
	competing  *requests.Competing
	authority  *x509.CertPool   // of the kubelets; nil where it is not known
	approvals  map[string]int   // approved client requests of each node
	approvedAt []time.Time      // times of this tool's approvals
	read       sets.Set[string] // nodes that were read
	nodes      sets.Set[string] // those of them that exist
}

func (t *tool) newPass(to report) *pass {
	p := &pass{tool: t, report: to, approvals: map[string]int{}, read: sets.New[string](), nodes: sets.New[string]()}
	p.competing = requests.NewCompeting(t.inventory, p.approvals)
	return p
}

// pass makes one pass. It returns for each signer the resourceVersion from which to watch.
func (t *tool) pass(ctx context.Context, to report) (summary, map[string]string, error) {
	p := t.newPass(to)
	var err error
	if p.authority, err = t.cluster.authority(ctx, t.kubeletCA); err != nil {
		return summary{}, nil, err
	}
	versions := map[string]string{}
	for _, signer := range requests.Signers {
		if err == nil {
			versions[signer], err = t.cluster.eachRequest(ctx, signer, p.check)
		}
	}
	if err == nil {
		err = p.decideAll(ctx)
	}
	p.summary.Complete = err == nil
	if p.summary.Complete || !p.summary.empty() { // report approvals also after an error
		err = errors.Join(err, to.end(p.summary))
	}
	return p.summary, versions, err
}

func (p *pass) record(f finding) {
	p.summary.add(f)
	p.report.add(f)
}

func (p *pass) check(csr *certificatesv1.CertificateSigningRequest) {
	if node := requests.ApprovedFor(csr); node != "" {
		p.approvals[node]++
	}
	for _, c := range csr.Status.Conditions {
		if c.Type == certificatesv1.CertificateApproved && c.Reason == approver.ApprovalReason {
			p.approvedAt = append(p.approvedAt, c.LastUpdateTime.Time)
		}
	}
	if requests.Decided(csr) {
		return
	}
	verdict := p.decide(csr, requests.Inputs{})
	if len(verdict.Findings) == 0 || slices.ContainsFunc(failed(verdict.Findings), func(f requests.Finding) bool { return !needsReads(f) }) {
		p.record(withoutReads(csr, verdict))
		return
	}
	if dropped := p.competing.Add(requests.Candidate{Request: csr.DeepCopy(), Verdict: verdict}); dropped != nil {
		p.record(withoutReads(dropped.Request, dropped.Verdict))
	}
}

func (p *pass) decide(csr *certificatesv1.CertificateSigningRequest, in requests.Inputs) requests.Verdict {
	in.Request, in.Inventory, in.Now, in.Policy = csr, p.inventory, time.Now(), p.policy
	return requests.Decide(in)
}

func (p *pass) decideAll(ctx context.Context) error {
	waiting, err := p.decideEach(ctx, p.competing.Candidates())
	if err == nil && len(waiting) > 0 && p.once {
		p.print("Calling kubelets ...")
		p.kubelets.calls.Wait()
		waiting, err = p.decideEach(ctx, waiting)
	}
	for _, c := range waiting {
		p.record(newFinding(c.Request, asking, c.Verdict.KeepPending("Kubelet", reasonAskingKubelet,
			"The kubelet was called for its certificate and has not answered yet")))
	}
	return err
}

func (p *pass) decideEach(ctx context.Context, list []requests.Candidate) (waiting []requests.Candidate, err error) {
	for _, c := range list {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		done, err := p.approve(ctx, &c)
		if err != nil {
			return nil, err
		}
		if !done {
			waiting = append(waiting, c)
		}
	}
	return waiting, nil
}

// approve approves a candidate if everything is proven. done is false while the kubelet has not answered.
func (p *pass) approve(ctx context.Context, c *requests.Candidate) (done bool, err error) {
	for range maxAttempts {
		if answered, err := p.prove(ctx, c); err != nil || !answered {
			return false, err
		}
		if !c.Verdict.Approve {
			p.record(newFinding(c.Request, pending, c.Verdict))
			return true, nil
		}
		err := p.cluster.approve(ctx, c.Request, c.Verdict.Reason, p.dryRun)
		if err == nil {
			p.approved(c)
			return true, nil
		}
		if !errors.Is(err, errChanged) {
			return false, err
		}
		now, err := p.cluster.readAgain(ctx, c.Request)
		if err != nil || now == nil {
			return true, err
		}
		if c.Request = now; requests.Decided(now) { // by another run of this tool, or a person
			p.competing.Decided(c.Verdict)
			if node := requests.ApprovedFor(now); node != "" {
				p.approvals[node]++
			}
			return true, nil
		}
	}
	p.record(newFinding(c.Request, pending, c.Verdict.KeepPending("Unchanged", reasonChanging,
		"Another client keeps modifying this request; see the audit log")))
	return true, nil
}

// prove decides with the node and, if needed, the certificate of its kubelet. answered is false while the kubelet has
// not answered.
func (p *pass) prove(ctx context.Context, c *requests.Candidate) (answered bool, err error) {
	if !p.read.Has(c.Verdict.Node) {
		if _, err := p.cluster.node(ctx, c.Verdict.Node); err == nil {
			p.nodes.Insert(c.Verdict.Node)
		} else if !apierrors.IsNotFound(err) {
			return false, err
		}
		p.read.Insert(c.Verdict.Node)
	}
	in := requests.Inputs{Nodes: p.nodes, Approvals: p.approvals}
	c.Verdict = p.decide(c.Request, in)
	if c.Verdict.NeedsKubeletCertificate() {
		if p.authority == nil {
			c.Verdict = c.Verdict.KeepPending("Kubelet", reasonNoAuthority,
				"The authority of the kubelets is not known, so a kubelet's certificate proves nothing; set --kubelet-ca")
			return true, nil
		}
		a := p.kubelets.lookUp(ctx, c.Verdict.Node)
		switch {
		case a.calling:
			return false, nil
		case a.err != nil:
			c.Verdict = c.Verdict.KeepPending("Kubelet", reasonKubeletUnreachable, fmt.Sprintf("Calling the kubelet for its certificate: %v", a.err))
			return true, nil
		}
		in.KubeletCertificate = &requests.KubeletCertificate{Chain: a.chain, Roots: p.authority}
		c.Verdict = p.decide(c.Request, in)
	}
	if !c.Verdict.Approve {
		return true, nil
	}
	if c.Verdict = p.competing.Contest(c.Verdict); !c.Verdict.Approve {
		return true, nil
	}
	if wait := p.limit.wait(p.approvedAt, time.Now()); wait > 0 {
		c.Verdict = c.Verdict.KeepPending("Limit", reasonLimitReached, fmt.Sprintf("Everything is proven, but %d were approved within %s; "+
			"the next approval is possible in %s", p.limit.approvals, p.limit.window, wait.Round(time.Second)))
	}
	return true, nil
}

func (p *pass) approved(c *requests.Candidate) {
	o := approved
	if p.dryRun {
		o = wouldApprove
	}
	p.record(newFinding(c.Request, o, c.Verdict))
	p.approvedAt = append(p.approvedAt, time.Now())
	p.competing.Approved(c.Verdict)
}
