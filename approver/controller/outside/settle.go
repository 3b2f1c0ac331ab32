package outside

import (
	"context"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/solonode/sno/approver"
)

// maxAttempts is how often a request is decided on that somebody else writes in between.
const maxAttempts = 3

// settle takes a second look, at those that may be proven. Their kubelets answer meanwhile, and nobody else waits for them.
func (s *sight) settle(ctx context.Context) error {
	s.budget = approver.Spent(s.spent...)
	waiting, err := s.settleAll(ctx, s.candidates.inOrder())
	if err != nil || len(waiting) == 0 {
		return err
	}
	if s.patient {
		s.say("Calling kubelets ...")
		s.kubelets.wait()
		if waiting, err = s.settleAll(ctx, waiting); err != nil {
			return err
		}
	}
	for _, c := range waiting {
		s.found(newFinding(c.csr, asking, keptBack(c.verdict, "Kubelet", reasonAskingKubelet,
			"The kubelet was called for its certificate and has not answered yet")))
	}
	return nil
}

// settleAll settles the candidates and returns those whose kubelet has not answered.
func (s *sight) settleAll(ctx context.Context, list []candidate) ([]candidate, error) {
	var waiting []candidate
	for _, c := range list {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		done, err := s.settleOne(ctx, &c)
		if err != nil {
			return nil, err
		}
		if !done {
			waiting = append(waiting, c)
		}
	}
	return waiting, nil
}

// settleOne decides on one candidate with all that can be known, and approves it where everything proves out. It is not done while
// the kubelet has not answered.
func (s *sight) settleOne(ctx context.Context, c *candidate) (done bool, err error) {
	for range maxAttempts {
		verdict, answered, err := s.prove(ctx, c)
		if err != nil {
			return true, err
		}
		if c.verdict = verdict; !answered {
			return false, nil
		}
		if !verdict.Approve {
			s.found(newFinding(c.csr, pending, verdict))
			return true, nil
		}
		err = s.requests.write(ctx, c.csr, verdict, s.dryRun)
		if err == nil {
			s.count(c)
			return true, nil
		}
		if !errors.Is(err, errChanged) {
			return true, err
		}
		// Read it again, decide again.
		now, err := s.requests.get(ctx, c.csr)
		if err != nil || now == nil {
			return true, err
		}
		if c.csr = now; decided(now) {
			s.decidedByOther(c)
			return true, nil
		}
	}
	s.found(newFinding(c.csr, pending, keptBack(c.verdict, "Unchanged", reasonChanging,
		"Somebody else writes this request all the time, so that no decision on it holds")))
	return true, nil
}

// prove reads what the decision needs that was not read for all: the node, and what its kubelet presents.
func (s *sight) prove(ctx context.Context, c *candidate) (verdict approver.Verdict, answered bool, err error) {
	names, err := s.node(ctx, c.node)
	if err != nil {
		return verdict, true, err
	}
	in := approver.Inputs{Nodes: names, Approvals: s.approvals}
	verdict = s.decide(c.csr, in)
	if verdict.WantsCertificate() {
		if s.authority == nil {
			return keptBack(verdict, "Kubelet", reasonNoAuthority,
				"Who signs for kubelets is not known, so that a kubelet's certificate would prove nothing; give --kubelet-ca"), true, nil
		}
		answer := s.kubelets.ask(ctx, c.node)
		switch {
		case answer.calling:
			return verdict, false, nil
		case answer.err != nil:
			return keptBack(verdict, "Kubelet", reasonKubeletUnreachable, fmt.Sprintf("Calling the kubelet for its certificate: %v", answer.err)), true, nil
		}
		in.Shown = &approver.Shown{Chain: answer.chain, Roots: s.authority}
		verdict = s.decide(c.csr, in)
	}
	if !verdict.Approve {
		return verdict, true, nil
	}
	return s.keepBack(c, verdict), true, nil
}

// keepBack holds a proven request back where approving it would be one too many.
func (s *sight) keepBack(c *candidate, verdict approver.Verdict) approver.Verdict {
	if s.candidates.contested(c.key, s.approvals[c.node]) {
		return contested(verdict)
	}
	if _, ok, wait := s.limit.Take(s.budget, s.now()); !ok {
		return keptBack(verdict, "Limit", reasonLimitReached, fmt.Sprintf("It is proven, but %d were approved within %s; the next one can be in %s",
			s.limit.Approvals, s.limit.Window, wait.Round(time.Second)))
	}
	return verdict
}

// decidedByOther keeps the books of what another run of this tool, or a person, did meanwhile.
func (s *sight) decidedByOther(c *candidate) {
	s.candidates.done(c.key)
	if node := approver.ApprovedFor(c.csr); node != "" {
		s.approvals[node]++
	}
}

// count keeps the books of what this look approved.
func (s *sight) count(c *candidate) {
	what := approved
	if s.dryRun {
		what = wouldApprove
	}
	s.found(newFinding(c.csr, what, c.verdict))
	s.budget, _, _ = s.limit.Take(s.budget, s.now())
	s.candidates.done(c.key)
	if c.flow == approver.ClientFlow {
		s.approvals[c.node]++
	}
}

// node is the set of the node's name when there is such a node, and the empty one when there is none. A flood of requests for one node
// reads it once.
func (s *sight) node(ctx context.Context, name string) (sets.Set[string], error) {
	there, read := s.exists[name]
	if !read {
		node, err := s.nodes.get(ctx, name)
		if err != nil {
			return nil, err
		}
		there = node != nil
		s.exists[name] = there
	}
	if there {
		return sets.New(name), nil
	}
	return sets.Set[string]{}, nil
}

// decided tells that nobody waits for a decision any more.
func decided(csr *certificatesv1.CertificateSigningRequest) bool {
	return len(csr.Status.Conditions) > 0 || len(csr.Status.Certificate) > 0
}
