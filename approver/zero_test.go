package approver_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology"
)

// What a host forgot to fill in never turns the stock approver on, whatever else is known.
func TestUnreadClusterDecidesNothing(t *testing.T) {
	for name, cluster := range map[string]topology.Cluster{
		"zero":               {},
		"control plane only": {ControlPlane: topology.ReadingOf(single)},
		"workers only":       {Infrastructure: topology.ReadingOf(single)},
	} {
		in := inputs(func(in *approver.PatchInputs) { in.Cluster, in.ConfigMap = &cluster, edited("", "made") })
		if err := in.Validate(); !errors.Is(err, approver.ErrInputs) || !errors.Is(err, topology.ErrClusterNotRead) {
			t.Errorf("%s: %v", name, err)
		}
		if d := approver.Desired(in); d.Action != approver.Nothing || d.Result == nil || d.Result.State != patch.Failed {
			t.Errorf("%s: %q, %v", name, d.Action, d.Result)
		}
		if got := approver.Observe(in); got.State != patch.Failed {
			t.Errorf("%s: observed as %v", name, got)
		}
	}
}

// A request that Decide would approve is not approved when one of the inputs is left out.
func TestHalfFilledInputsApproveNothing(t *testing.T) {
	t.Run("nothing at all", func(t *testing.T) {
		if v := approver.Decide(approver.Inputs{}); v.Approve || v.Reason != approver.ReasonInputsIncomplete {
			t.Errorf("%+v", v)
		}
	})
	for name, from := range map[string]func() (*ask, *world){"joining": joiner, "serving": server, "renewing": renewer} {
		for left, out := range map[string]func(*approver.Inputs){
			"the time": func(in *approver.Inputs) { in.Now = time.Time{} },
			"the time, of the request as well": func(in *approver.Inputs) {
				in.Now, in.Request.Created = time.Time{}, time.Time{}
			},
			"Parse": func(in *approver.Inputs) {
				r := in.Request
				in.Request = approver.Request{Name: r.Name, Created: r.Created, Signer: r.Signer, Username: r.Username, Groups: r.Groups, Usages: r.Usages, X509: r.X509}
			},
		} {
			a, w := from()
			if v := a.decided(t, w); !v.Approve {
				t.Fatalf("%s: %s", name, v.Message)
			}
			out(&w.Inputs)
			if v := approver.Decide(w.Inputs); v.Approve || v.Reason != approver.ReasonInputsIncomplete {
				t.Errorf("%s without %s: %t %s: %s", name, left, v.Approve, v.Reason, v.Message)
			}
		}
	}
	a, w := joiner()
	a.decided(t, w)
	w.Approvals = nil
	if v := approver.Decide(w.Inputs); v.Approve || v.Reason != approver.ReasonApprovalsUnknown {
		t.Errorf("joining without the number of approvals: %t %s: %s", v.Approve, v.Reason, v.Message)
	}
}

// The bound itself is not beyond it.
func TestBoundOfText(t *testing.T) {
	for text, want := range map[string]error{strings.Repeat("x", 16<<10): approver.ErrNotPEM, strings.Repeat("x", 16<<10+1): approver.ErrTooLarge} {
		if _, err := approver.Read([]byte(text)); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v, want %v", len(text), err, want)
		}
	}
}

// A limit without a window, or without a number, lets nothing through, and nobody asks again at once.
func TestHalfFilledLimit(t *testing.T) {
	for name, limit := range map[string]approver.Limit{
		"zero": {}, "no window": {Approvals: 5}, "no number": {Window: time.Minute}, "a negative window": {Approvals: 5, Window: -time.Minute},
	} {
		budget := approver.Spent(now)
		for range 7 {
			after, ok, wait := limit.Take(budget, now)
			if ok || wait <= 0 {
				t.Fatalf("%s: %t, %s", name, ok, wait)
			}
			budget = after
		}
	}
}
