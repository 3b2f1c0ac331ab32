// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/approver/requests"
)

const (
	maxServing  = 4 // serving requests of one node that are decided on; a kubelet has one pending at a time
	maxAttempts = 3 // to approve a request that another client modifies meanwhile
)

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

// key identifies the requests that compete for the same approval.
type key struct {
	flow requests.Flow
	node string
}

type group struct {
	total  int // of all requests, also those that were dropped
	newest []*certificatesv1.CertificateSigningRequest
}

type candidate struct {
	key
	csr     *certificatesv1.CertificateSigningRequest
	verdict requests.Verdict
}

// pass checks every request without further reads first, and then reads nodes and calls kubelets for the candidates
// only.
type pass struct {
	*tool
	report     report
	summary    summary
	groups     map[key]*group
	authority  *x509.CertPool   // of the kubelets; nil where it is not known
	approvals  map[string]int   // approved client requests of each node
	approvedAt []time.Time      // times of this tool's approvals
	read       sets.Set[string] // nodes that were read
	nodes      sets.Set[string] // those of them that exist
}

func (t *tool) newPass(to report) *pass {
	return &pass{tool: t, report: to, groups: map[key]*group{}, approvals: map[string]int{}, read: sets.New[string](), nodes: sets.New[string]()}
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
	k := key{verdict.Flow, verdict.Node}
	if dropped := p.addToGroup(k, csr.DeepCopy()); dropped != nil {
		withheld := contested(verdict)
		if k.flow == requests.ServingFlow {
			withheld = keepPending(verdict, "OneOfNode", reasonTooManyOfNode,
				fmt.Sprintf("The node has more than %d pending requests, and this one is not among the newest", maxServing))
		}
		p.record(withoutReads(dropped, withheld))
	}
}

func (p *pass) decide(csr *certificatesv1.CertificateSigningRequest, in requests.Inputs) requests.Verdict {
	in.Request, in.Inventory, in.Now, in.Policy = csr, p.inventory, time.Now(), p.policy
	return requests.Decide(in)
}

// addToGroup adds the request to its group, and returns the one that it drops, if any.
func (p *pass) addToGroup(k key, csr *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	g := p.groups[k]
	if g == nil {
		g = &group{}
		p.groups[k] = g
	}
	g.total++
	g.newest = append(g.newest, csr)
	slices.SortFunc(g.newest, newestFirst)
	most := p.maxRequests(k)
	if len(g.newest) <= most {
		return nil
	}
	dropped := g.newest[most]
	g.newest = g.newest[:most]
	return dropped
}

func (p *pass) maxRequests(k key) int {
	if entry := p.inventory.Node(k.node); k.flow == requests.ClientFlow && entry != nil {
		return entry.Count
	}
	return maxServing
}

// contested reports whether more client requests are pending than may be approved: it is not known which are the
// node's.
func (p *pass) contested(k key) bool {
	return k.flow == requests.ClientFlow && p.groups[k].total > p.maxRequests(k)-p.approvals[k.node]
}

func (p *pass) candidates() []candidate {
	var list []candidate
	for k, g := range p.groups {
		for _, csr := range g.newest {
			list = append(list, candidate{key: k, csr: csr})
		}
	}
	slices.SortFunc(list, func(a, b candidate) int { return newestFirst(b.csr, a.csr) })
	return list
}

func newestFirst(a, b *certificatesv1.CertificateSigningRequest) int {
	return cmp.Or(b.CreationTimestamp.Time.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
}

func (p *pass) decideAll(ctx context.Context) error {
	waiting, err := p.decideEach(ctx, p.candidates())
	if err == nil && len(waiting) > 0 && p.once {
		p.print("Calling kubelets ...")
		p.kubelets.calls.Wait()
		waiting, err = p.decideEach(ctx, waiting)
	}
	for _, c := range waiting {
		p.record(newFinding(c.csr, asking, keepPending(c.verdict, "Kubelet", reasonAskingKubelet,
			"The kubelet was called for its certificate and has not answered yet")))
	}
	return err
}

func (p *pass) decideEach(ctx context.Context, list []candidate) (waiting []candidate, err error) {
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
func (p *pass) approve(ctx context.Context, c *candidate) (done bool, err error) {
	for range maxAttempts {
		if answered, err := p.prove(ctx, c); err != nil || !answered {
			return false, err
		}
		if !c.verdict.Approve {
			p.record(newFinding(c.csr, pending, c.verdict))
			return true, nil
		}
		err := p.cluster.approve(ctx, c.csr, c.verdict.Reason, p.dryRun)
		if err == nil {
			p.approved(c)
			return true, nil
		}
		if !errors.Is(err, errChanged) {
			return false, err
		}
		now, err := p.cluster.readAgain(ctx, c.csr)
		if err != nil || now == nil {
			return true, err
		}
		if c.csr = now; requests.Decided(now) { // by another run of this tool, or a person
			p.groups[c.key].total--
			if node := requests.ApprovedFor(now); node != "" {
				p.approvals[node]++
			}
			return true, nil
		}
	}
	p.record(newFinding(c.csr, pending, keepPending(c.verdict, "Unchanged", reasonChanging,
		"Another client keeps modifying this request; see the audit log")))
	return true, nil
}

// prove decides with the node and, if needed, the certificate of its kubelet. answered is false while the kubelet has
// not answered.
func (p *pass) prove(ctx context.Context, c *candidate) (answered bool, err error) {
	if !p.read.Has(c.node) {
		if _, err := p.cluster.node(ctx, c.node); err == nil {
			p.nodes.Insert(c.node)
		} else if !apierrors.IsNotFound(err) {
			return false, err
		}
		p.read.Insert(c.node)
	}
	in := requests.Inputs{Nodes: p.nodes, Approvals: p.approvals}
	c.verdict = p.decide(c.csr, in)
	if c.verdict.NeedsKubeletCertificate() {
		if p.authority == nil {
			c.verdict = keepPending(c.verdict, "Kubelet", reasonNoAuthority,
				"The authority of the kubelets is not known, so a kubelet's certificate proves nothing; set --kubelet-ca")
			return true, nil
		}
		a := p.kubelets.lookUp(ctx, c.node)
		switch {
		case a.calling:
			return false, nil
		case a.err != nil:
			c.verdict = keepPending(c.verdict, "Kubelet", reasonKubeletUnreachable, fmt.Sprintf("Calling the kubelet for its certificate: %v", a.err))
			return true, nil
		}
		in.KubeletCertificate = &requests.KubeletCertificate{Chain: a.chain, Roots: p.authority}
		c.verdict = p.decide(c.csr, in)
	}
	if !c.verdict.Approve {
		return true, nil
	}
	if p.contested(c.key) {
		c.verdict = contested(c.verdict)
	} else if wait := p.limit.wait(p.approvedAt, time.Now()); wait > 0 {
		c.verdict = keepPending(c.verdict, "Limit", reasonLimitReached, fmt.Sprintf("Everything is proven, but %d were approved within %s; "+
			"the next approval is possible in %s", p.limit.approvals, p.limit.window, wait.Round(time.Second)))
	}
	return true, nil
}

func (p *pass) approved(c *candidate) {
	o := approved
	if p.dryRun {
		o = wouldApprove
	}
	p.record(newFinding(c.csr, o, c.verdict))
	p.approvedAt = append(p.approvedAt, time.Now())
	p.groups[c.key].total--
	if c.flow == requests.ClientFlow {
		p.approvals[c.node]++
	}
}
