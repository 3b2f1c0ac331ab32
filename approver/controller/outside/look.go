package outside

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/approver/inventory"
)

// signers are those whose requests are decided about.
var signers = []string{certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName}

// looker looks at all requests, again and again. What it needs to know it reads each time; nothing is remembered but what kubelets
// presented in the last minute.
type looker struct {
	requests *requests
	nodes    nodes
	kubelets *kubelets
	policy   approver.Policy
	limit    approver.Limit
	now      func() time.Time
	dryRun   bool
	// patient has a look wait for the kubelets that it called. Otherwise the next one has their answers.
	patient bool
	// say tells a person what takes long.
	say func(format string, args ...any)
}

// sources are what proves a request, beside the cluster itself.
type sources struct {
	inventory *inventory.Inventory
	// authority is who signs for kubelets; nil where that is not known.
	authority *x509.CertPool
}

// look is one look at all requests. It returns for each signer the resourceVersion from which a watch misses nothing. Cheap checks come
// first: a node is read, and its kubelet called, only for a request of which nothing else is missing.
func (l *looker) look(ctx context.Context, from sources, to report) (summary, map[string]string, error) {
	s := &sight{looker: l, sources: from, report: to, approvals: map[string]int{}, exists: map[string]bool{}}
	s.candidates.inventory = from.inventory
	versions := map[string]string{}
	err := func() (err error) {
		for _, signer := range signers {
			if versions[signer], err = l.requests.each(ctx, signer, s.see); err != nil {
				return err
			}
		}
		return s.settle(ctx)
	}()
	s.summary.Complete = err == nil
	if s.summary.Complete || !s.summary.none() {
		// What was approved is told also where the rest could not be looked at.
		err = errors.Join(err, to.end(s.summary))
	}
	return s.summary, versions, err
}

// sight is what one look has seen so far.
type sight struct {
	*looker
	sources
	report     report
	summary    summary
	candidates candidates
	// approvals counts the approved client requests of each node, and spent has the times of our own approvals.
	approvals map[string]int
	spent     []time.Time
	budget    approver.Budget
	// exists remembers which nodes there are.
	exists map[string]bool
}

func (s *sight) found(f finding) {
	s.summary.add(f)
	s.report.add(f)
}

// see looks at one request without reading anything else.
func (s *sight) see(csr *certificatesv1.CertificateSigningRequest) error {
	if node := approver.ApprovedFor(csr); node != "" {
		s.approvals[node]++
	}
	if at, ours := spent(csr); ours {
		s.spent = append(s.spent, at)
	}
	if decided(csr) {
		return nil
	}
	verdict := s.decide(csr, approver.Inputs{})
	if !mayProve(verdict) {
		s.found(cheaply(csr, verdict))
		return nil
	}
	k := key{verdict.Flow, verdict.Node}
	if dropped := s.candidates.add(k, csr.DeepCopy()); dropped != nil {
		s.found(cheaply(dropped, tooMany(k, verdict)))
	}
	return nil
}

// mayProve tells that nothing is missing but what was not read yet.
func mayProve(v approver.Verdict) bool {
	for _, missing := range v.Missing() {
		if !notRead(missing.Reason) {
			return false
		}
	}
	return len(v.Findings) > 0
}

func tooMany(k key, v approver.Verdict) approver.Verdict {
	if k.flow == approver.ClientFlow {
		return contested(v)
	}
	return keptBack(v, "OneOfNode", reasonTooManyOfNode,
		fmt.Sprintf("The node has more than %d requests pending, and this one is not among the newest", servingPerNode))
}

func contested(v approver.Verdict) approver.Verdict {
	return keptBack(v, "OneOfNode", reasonContested,
		"More requests are pending for this node than may be approved, and which are its own cannot be told; delete those that are not")
}

// decide adds to what is known beside the request: the request, the inventory, and the time.
func (s *sight) decide(csr *certificatesv1.CertificateSigningRequest, in approver.Inputs) approver.Verdict {
	request, err := approver.Parse(csr)
	if err != nil {
		return approver.Unreadable(err)
	}
	in.Request, in.Inventory, in.Now, in.Policy = request, s.inventory, s.now(), s.policy
	return approver.Decide(in)
}
