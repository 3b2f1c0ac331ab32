// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"net/http"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/solonode/sno/e2e/framework/suite"
)

// leaders are the figures of the times with two leaders.
type leaders struct {
	times int
	// requests are the writes of former leaders from their continuation on, without Leases and events, refused those that
	// the API server refused, and writes the patches that changed something.
	requests, refused, writes int
	// created are objects that they created, and that the next leader deleted.
	created int
	// together are effective writes of former leaders while the topology changed twice.
	together int
}

func (l *leaders) record() {
	late := suite.Figure("Two leaders: writes of the former one after it was continued", "%d times: %d with conditions, %d refused; %d patches reverted, %d objects deleted again",
		l.times, l.requests, l.refused, l.writes, l.created)
	late.Bound = "0 overwritten"
	suite.Record(suite.Faults, late, suite.Figure("Two leaders: effective patches of the former one while both follow flips", "%d", l.together))
}

// twoLeaders stops the leader at a random moment, has another process take its Lease, and continues it when that has
// made a change. The former leader then assumes to lead until it reads its Lease.
func (e *environment) twoLeaders(ctx context.Context) {
	const one = 20 // in so many kills
	times := *takeOvers
	if times == 0 {
		times = max(*killCount/one, 1)
	}
	figures := &leaders{}
	defer figures.record() // also of a run that fails
	leader := e.settledAll(ctx)
	for range times {
		leader = e.takeOver(ctx, leader, figures)
	}
	e.end(ctx, leader)
}

func (e *environment) takeOver(ctx context.Context, former *process, figures *leaders) *process {
	GinkgoHelper()
	c := e.flip()
	k := e.choose(c.writes)
	fired, arrives := make(chan struct{}), make(chan struct{})
	var stopped error
	stop := func() { stopped = syscall.Kill(former.component.PID(), syscall.SIGSTOP) }
	disarm := arm(former, k, fired, arrives, stop)
	c.make(ctx)
	at := k.String()
	if _, interrupted := e.waitSettled(ctx, c.name, nil, fired, former); !interrupted {
		disarm()
		at = atRest
		stop()
	}
	Expect(stopped).NotTo(HaveOccurred())
	at = "with the former leader stopped " + at
	e.releaseLease(ctx, former.lease)
	next := e.runAll(ctx)
	began := time.Now()
	// The next leader ends the change, and makes the opposite one.
	e.followed(ctx, change{name: "a take-over", make: func(context.Context) {}}, at, next)
	e.followed(ctx, e.flip(), at, next)
	holder := e.holder(ctx, next)

	length := time.Since(began)
	close(arrives)
	arrived := former.Delivered()
	Expect(syscall.Kill(former.component.PID(), syscall.SIGCONT)).To(Succeed())
	suite.Elapse(ctx, quietTime)
	e.waitSettled(ctx, "two leaders, "+at, nil, nil, next, former)
	writes := e.conclude(ctx, "two leaders, "+at, func(writes []Write) []Violation { return FormerLeader(writes, former.mark) })
	Expect(e.holder(ctx, next)).To(Equal(holder), "the Lease keeps its holder")
	for _, w := range writes {
		if w.Process != former.mark || isReport(w) {
			continue
		}
		figures.requests++
		if w.Code >= http.StatusBadRequest {
			figures.refused++
		}
		if creates(w) {
			figures.created++
		}
	}
	figures.times++
	figures.writes += len(LateWrites(writes, former.mark))
	e.logf("%4d times with two leaders: %s for %s, %d writes late", figures.times, at, length.Round(10*time.Millisecond), arrived)

	// Now both follow a change. Each flip releases the Lease, so that the former leader may hold it again.
	holds := ""
	for range 2 {
		before := figures.together
		for _, w := range e.followed(ctx, e.flip(), "while two lead", next, former) {
			if w.Process == former.mark && w.Effective && !isReport(w) && w.Subresource != statusSubresource {
				figures.together++
			}
			if w.Process != "" && w.Object.Resource == "leases" && w.accepted() {
				holds = w.Process
			}
		}
		e.logf("            both follow a flip: %d effective writes of the former leader", figures.together-before)
	}
	leader, other := next, former
	if holds == former.mark {
		leader, other = former, next
	}
	Expect(holds).To(Equal(leader.mark), "the process that has written the Lease")
	Expect(other.component.Kill()).To(Succeed())
	other.Stop()
	return leader
}

// followed makes a change that processes follow, and checks it.
func (e *environment) followed(ctx context.Context, c change, at string, processes ...*process) []Write {
	GinkgoHelper()
	c.make(ctx)
	what := c.name + ", " + at
	e.waitSettled(ctx, what, nil, nil, processes...)
	return e.conclude(ctx, what)
}
