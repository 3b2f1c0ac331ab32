package outside

import (
	"cmp"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/approver/inventory"
)

// servingPerNode is how many serving requests of one node are looked at, the newest. A kubelet waits for one at a time; only a
// hostile one has many.
const servingPerNode = 4

// key is what candidates stand beside each other for.
type key struct {
	flow approver.Flow
	node string
}

// rivals are the requests for one key of which only what takes a second look is missing.
type rivals struct {
	all    int
	newest []*certificatesv1.CertificateSigningRequest
}

// candidates are held until all requests were seen: only then it is known how many there are for a node, and how many were approved.
// They are few, because whoever floods the cluster has either the name of no inventory or one node's identity.
type candidates struct {
	inventory *inventory.Inventory
	of        map[key]*rivals
}

// add holds the request, and returns the one that is not looked at for its sake, if any.
func (c *candidates) add(k key, csr *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	if c.of == nil {
		c.of = map[key]*rivals{}
	}
	r := c.of[k]
	if r == nil {
		r = &rivals{}
		c.of[k] = r
	}
	r.all++
	at, _ := slices.BinarySearchFunc(r.newest, csr, newestFirst)
	r.newest = slices.Insert(r.newest, at, csr)
	if len(r.newest) <= c.most(k) {
		return nil
	}
	last := len(r.newest) - 1
	dropped := r.newest[last]
	r.newest = slices.Delete(r.newest, last, last+1)
	return dropped
}

func (c *candidates) most(k key) int {
	if entry := c.inventory.Node(k.node); k.flow == approver.ClientFlow && entry != nil {
		return entry.Count
	}
	return servingPerNode
}

// contested tells that more client requests are pending for the node than may still be approved, so that which of them are the
// node's cannot be told.
func (c *candidates) contested(k key, alreadyApproved int) bool {
	return k.flow == approver.ClientFlow && c.of[k].all > c.most(k)-alreadyApproved
}

// done tells that one of them was approved, so that it is no rival any more.
func (c *candidates) done(k key) { c.of[k].all-- }

// inOrder lists the candidates, who has waited longest first.
func (c *candidates) inOrder() []candidate {
	var list []candidate
	for k, r := range c.of {
		for _, csr := range r.newest {
			list = append(list, candidate{key: k, csr: csr})
		}
	}
	slices.SortFunc(list, func(a, b candidate) int { return newestFirst(b.csr, a.csr) })
	return list
}

// candidate is one request that a second look is taken at.
type candidate struct {
	key
	csr *certificatesv1.CertificateSigningRequest
	// verdict is the last decision on it.
	verdict approver.Verdict
}

func newestFirst(a, b *certificatesv1.CertificateSigningRequest) int {
	return cmp.Or(b.CreationTimestamp.Time.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
}

// spent are the times of our own approvals, as the cluster still shows them.
func spent(csr *certificatesv1.CertificateSigningRequest) (time.Time, bool) {
	for _, c := range csr.Status.Conditions {
		if c.Type == certificatesv1.CertificateApproved && c.Reason == approver.ApprovalReason {
			return c.LastUpdateTime.Time, true
		}
	}
	return time.Time{}, false
}
