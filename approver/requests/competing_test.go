// SPDX-License-Identifier: Apache-2.0

package requests_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/approver/inventory"
	"github.com/solonode/sno/approver/requests"
)

func created(minute int, v requests.Verdict) requests.Candidate {
	return requests.Candidate{Verdict: v, Request: &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprint(minute), CreationTimestamp: metav1.NewTime(time.Unix(int64(60*minute), 0)),
	}}}
}

// If more client requests are pending than may be approved, all stay pending. Serving requests do not compete.
func TestContestedRequests(t *testing.T) {
	list, err := inventory.Load([]byte("version: 1\nnodes: [{name: one}, {name: two, count: 2}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	of := func(flow requests.Flow, node string) requests.Verdict {
		return requests.Verdict{Approve: true, Flow: flow, Node: node}
	}
	one, two, serving := of(requests.ClientFlow, "one"), of(requests.ClientFlow, "two"), of(requests.ServingFlow, "one")
	for _, test := range []struct {
		verdict           requests.Verdict
		pending, approved int
		want              bool
	}{
		{one, 1, 0, false}, {one, 2, 0, true}, {one, 10, 0, true},
		{two, 1, 0, false}, {two, 2, 0, false}, {two, 2, 1, true}, {two, 1, 1, false}, {two, 3, 0, true},
		{serving, 10, 5, false},
	} {
		c := requests.NewCompeting(list, map[string]int{test.verdict.Node: test.approved})
		for i := range test.pending {
			c.Add(created(i, test.verdict))
		}
		got := c.Contest(test.verdict)
		if contested := got.Reason == requests.ReasonContested; contested != test.want || contested == got.Approve {
			t.Errorf("%+v: %+v", test, got)
		}
		if n := len(c.Candidates()); n > max(2, requests.MaxServing) {
			t.Errorf("%+v: %d candidates", test, n)
		}
	}
}

// An approval and a decision of another client leave the others uncontested, or not.
func TestContestAfterDecisions(t *testing.T) {
	list, err := inventory.New(inventory.Node{Name: "two", Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	verdict := requests.Verdict{Approve: true, Flow: requests.ClientFlow, Node: "two"}
	c := requests.NewCompeting(list, map[string]int{})
	for i := range 3 {
		c.Add(created(i, verdict))
	}
	c.Decided(verdict) // denied by a person
	if !c.Contest(verdict).Approve {
		t.Error("two requests for two approvals are contested")
	}
	c.Approved(verdict)
	if !c.Contest(verdict).Approve {
		t.Error("one request for one approval is contested")
	}
}

// The newest serving requests are decided on, oldest first.
func TestNewestRequests(t *testing.T) {
	c, candidates, dropped := requests.NewCompeting(nil, nil), []string{}, []string{}
	for _, minute := range []int{5, 1, 4, 6, 2, 3} {
		if d := c.Add(created(minute, requests.Verdict{Flow: requests.ServingFlow, Node: "one"})); d != nil {
			dropped = append(dropped, d.Request.Name+" "+d.Verdict.Reason)
		}
	}
	for _, candidate := range c.Candidates() {
		candidates = append(candidates, candidate.Request.Name)
	}
	if !slices.Equal(candidates, []string{"3", "4", "5", "6"}) || !slices.Equal(dropped, []string{"1 TooManyOfNode", "2 TooManyOfNode"}) {
		t.Errorf("candidates %v, dropped %v", candidates, dropped)
	}
}
