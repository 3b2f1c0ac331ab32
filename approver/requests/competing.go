// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/solonode/sno/approver/inventory"
)

// MaxServing is the number of serving requests of one node that are decided on; a kubelet has one pending at a time.
const MaxServing = 4

// Reasons for requests that stay pending because of others of their node.
const (
	ReasonContested     = "Contested"
	ReasonTooManyOfNode = "TooManyOfNode"
)

// Competing collects pending requests that every check allows, or may still allow. The client requests of a node
// compete for its approvals: if there are more than approvals left, it is not known which are the node's, and none is
// approved (R-APP-4). Otherwise whoever has the bootstrapper's secret would only have to be first, or last.
type Competing struct {
	inventory *inventory.Inventory
	approvals map[string]int
	groups    map[group]*members
}

type group struct {
	flow Flow
	node string
}

type members struct {
	total  int // also those that were dropped
	newest []Candidate
}

// Candidate is a pending request and its verdict so far.
type Candidate struct {
	Request *certificatesv1.CertificateSigningRequest
	Verdict Verdict
}

// NewCompeting returns an empty collection. approvals counts the requests of the cluster by ApprovedFor; later changes
// by the caller count, and Approved makes them.
func NewCompeting(known *inventory.Inventory, approvals map[string]int) *Competing {
	return &Competing{inventory: known, approvals: approvals, groups: map[group]*members{}}
}

// Add adds a request. Of each node only as many are kept as can be decided on, the newest: the one that is dropped is
// returned with the verdict because of which it stays pending.
func (c *Competing) Add(candidate Candidate) (dropped *Candidate) {
	of := groupOf(candidate.Verdict)
	m := c.groups[of]
	if m == nil {
		m = &members{}
		c.groups[of] = m
	}
	m.total++
	m.newest = append(m.newest, candidate)
	slices.SortFunc(m.newest, newestFirst)
	most := c.most(of)
	if len(m.newest) <= most {
		return nil
	}
	last := m.newest[most]
	m.newest = m.newest[:most]
	if of.flow == ClientFlow {
		last.Verdict = contested(last.Verdict)
	} else {
		last.Verdict = last.Verdict.KeepPending("OneOfNode", ReasonTooManyOfNode,
			fmt.Sprintf("The node has more than %d pending requests, and this one is not among the newest", MaxServing))
	}
	return &last
}

// Candidates returns the requests to decide on, oldest first.
func (c *Competing) Candidates() []Candidate {
	var list []Candidate
	for _, m := range c.groups {
		list = append(list, m.newest...)
	}
	slices.SortFunc(list, func(a, b Candidate) int { return newestFirst(b, a) })
	return list
}

// Contest returns the verdict that stands unless the request is contested.
func (c *Competing) Contest(v Verdict) Verdict {
	of := groupOf(v)
	if m := c.groups[of]; v.Approve && m != nil && of.flow == ClientFlow && m.total > c.most(of)-c.approvals[of.node] {
		return contested(v)
	}
	return v
}

// Approved counts an approval of a candidate.
func (c *Competing) Approved(v Verdict) {
	c.Decided(v)
	if v.Flow == ClientFlow {
		c.approvals[v.Node]++
	}
}

// Decided removes a candidate that another client has decided on.
func (c *Competing) Decided(v Verdict) {
	if m := c.groups[groupOf(v)]; m != nil {
		m.total--
	}
}

func (c *Competing) most(of group) int {
	if entry := c.inventory.Node(of.node); of.flow == ClientFlow && entry != nil {
		return entry.Count
	}
	return MaxServing
}

func groupOf(v Verdict) group { return group{v.Flow, v.Node} }

func newestFirst(a, b Candidate) int {
	return cmp.Or(b.Request.CreationTimestamp.Compare(a.Request.CreationTimestamp.Time), strings.Compare(a.Request.Name, b.Request.Name))
}

// KeepPending returns the verdict with one more finding, because of which the request stays pending.
func (v Verdict) KeepPending(check, reason, message string) Verdict {
	v.Findings = append(slices.Clip(v.Findings), Finding{Check: check, Reason: reason, Message: message})
	v.Approve, v.Reason, v.Message = false, reason, message
	return v
}

func contested(v Verdict) Verdict {
	return v.KeepPending("OneOfNode", ReasonContested,
		"More requests are pending for this node than may be approved, and it is not known which are its own; delete those that are not")
}
