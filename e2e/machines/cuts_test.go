// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/testcluster/nodemachine"
)

var _ = Describe("Bootstrap in place, with power cuts", Ordered, Label("in-place-cuts", suite.Long), func() {
	m := &machine{way: "in-place-cuts", command: postReboot, checks: everywhere(installed)}
	BeforeAll(m.setUp, NodeTimeout(stepTimeout))

	It("has a disk that is not bootable, or complete, after every power cut in the live system", func(ctx SpecContext) {
		m.configInPlace(ctx, func() {})
		m.bootLive(ctx) // to measure how long it runs
		Expect(m.WipeDisk(ctx)).To(Succeed())
		length := m.uptime
		m.cutAtPoints(0, length, func(at time.Duration) (ran, after string) {
			return m.cutLive(ctx, func(*nodemachine.Machine) { suite.Elapse(ctx, at) })
		})
		By("cutting while the disk is written, which is so short that possibly no random point is in it")
		_, after := m.cutLive(ctx, func(live *nodemachine.Machine) {
			// A poll from outside would take longer than the write.
			execute(ctx, live, "until [ -s /disk/boot/ignition/config.ign ]; do :; done")
		})
		Expect(after).To(Equal(notBootable))
		m.bootLive(ctx)
	}, cutsTimeout())

	It("continues at the next boot after every power cut in the first boot of the node, or tells a person what to do", m.cutNode, cutsTimeout())
})

var _ = Describe("All in one, with power cuts", Ordered, Label("all-in-one-cuts", suite.Long), func() {
	m := &machine{way: "all-in-one-cuts", command: aiokube, checks: everywhere(allInOne)}
	BeforeAll(m.setUp, NodeTimeout(stepTimeout))

	It("continues at the next boot after every power cut in the first boot, or tells a person what to do", func(ctx SpecContext) {
		m.configAllInOne(ctx)
		m.cutNode(ctx)
	}, cutsTimeout())
})

// cutsTimeout allows a step for each cut, and for what is before and after them.
func cutsTimeout() SpecTimeout { return SpecTimeout(time.Duration(*cuts+4) * stepTimeout) }

// cutPoints returns points at random, sorted. Each phase has its own.
func cutPoints(seed int64, phase uint64, length time.Duration) []time.Duration {
	random := rand.New(rand.NewPCG(uint64(seed), phase)) //nolint:gosec // not for a secret
	points := make([]time.Duration, *cuts)
	for i := range points {
		points[i] = time.Duration(random.Int64N(int64(length)))
	}
	slices.Sort(points)
	return points
}

// cutAtPoints calls cut at random points. It returns what the machine did at the cut, and its state afterwards.
func (m *machine) cutAtPoints(phase uint64, length time.Duration, cut func(at time.Duration) (ran, after string)) {
	for i, at := range cutPoints(GinkgoRandomSeed(), phase, length) {
		By(fmt.Sprintf("power cut %d of %d, at %s of %s, --seed=%d", i+1, *cuts, seconds(at), seconds(length), GinkgoRandomSeed()))
		ran, after := cut(at)
		AddReportEntry(fmt.Sprintf("power cut at %s, %s: %s", seconds(at), ran, after))
	}
}

// cutLive cuts the power of a live system when that function returns.
func (m *machine) cutLive(ctx context.Context, when func(*nodemachine.Machine)) (ran, after string) {
	live := m.makeLive(ctx, liveConfig)
	Expect(live.PowerOn(ctx)).To(Succeed())
	when(live)
	ran = running(ctx, live, bootstrapInPlace)
	Expect(live.PowerCut(ctx)).To(Succeed())
	after = m.diskState(ctx)
	m.removeLive()
	return ran, after
}

const (
	notBootable = "the disk is not bootable; the live system is booted again"
	complete    = "the disk is complete"
)

// diskState returns the state of the disk: notBootable or complete, and it fails in any other state.
func (m *machine) diskState(ctx context.Context) string {
	config, err := m.ExecOnDisk(ctx, "if [ -e boot/bootable ]; then cat boot/ignition/config.ign; fi")
	Expect(err).NotTo(HaveOccurred(), "an incomplete disk is bootable")
	if config == "" {
		Expect(m.Start(ctx)).To(MatchError(nodemachine.ErrNoDisk))
		return notBootable
	}
	Expect(json.Valid([]byte(config))).To(BeTrue(), "an incomplete disk is bootable, with %d bytes of a config", len(config))
	// The next live system needs a disk that has never been booted.
	Expect(m.WipeDisk(ctx)).To(Succeed())
	return complete
}

// running returns what a command of sno-install does now.
func running(ctx context.Context, on *nodemachine.Machine, command string) string {
	s, err := statusOf(ctx, on, command)
	if err != nil {
		return "off"
	}
	if s.State == done {
		return "after the command"
	}
	for _, p := range s.Phases {
		if p.State == "Running" {
			return p.Name
		}
	}
	if len(s.Phases) > 0 {
		return "between phases"
	}
	return "before the command"
}

// cutNode cuts the power during the first boot of a node. It has to pass all checks after the next boot, or end with an
// advice for a person.
func (m *machine) cutNode(ctx context.Context) {
	Expect(m.SaveDisk(ctx)).To(Succeed())
	m.boot(ctx) // to measure how long the command runs
	m.passChecks(ctx)
	m.cutAtPoints(1, m.uptime, func(at time.Duration) (ran, after string) {
		Expect(m.PowerCut(ctx)).To(Succeed())
		Expect(m.RestoreDisk(ctx)).To(Succeed())
		Expect(m.PowerOn(ctx)).To(Succeed())
		// The hostile requests begin before the cut.
		before, cancel := context.WithCancel(ctx)
		created := make(chan struct{})
		go func() {
			defer close(created)
			if m.WaitBooted(before) == nil && m.putTools(before) == nil {
				_ = wait.PollUntilContextCancel(before, poll, true, func(ctx context.Context) (bool, error) {
					_, err := m.Exec(ctx, "sh", "-c", createHostile.command)
					return err == nil, nil
				})
			}
		}()
		suite.Elapse(ctx, at)
		cancel()
		<-created
		ran = running(ctx, m.Machine, m.command)
		Expect(m.PowerCut(ctx)).To(Succeed())
		began := time.Now()
		if failure := m.recovers(ctx); failure != "" {
			Expect(failure).To(beAdvice(), "power cut in %s", ran)
			return ran, "failed with an advice: " + failure
		}
		return ran, "continues, and passes the checks after " + seconds(time.Since(began))
	})
}

// beAdvice matches the output of a failed unit that tells a person what to do.
func beAdvice() OmegaMatcher {
	return Or(ContainSubstring("install the node again"), ContainSubstring("change what the error names"))
}

// recovers turns the machine on. It returns nothing when the checks pass, or the last output of a unit that has failed
// and does not restart.
func (m *machine) recovers(ctx context.Context) (failure string) {
	Expect(m.Start(ctx)).To(Succeed())
	m.api.at(m.Address())
	Expect(m.putTools(ctx)).To(Succeed())
	m.loadWebServer(ctx)
	for _, c := range slices.Concat([]check{createHostile}, m.checks) {
		Eventually(ctx, func(ctx context.Context) error {
			_, err := m.Exec(ctx, "sh", "-c", c.command)
			if text, read := m.Exec(ctx, "sh", "-c", failedUnits); read == nil && text != "" {
				failure = strings.Join(strings.Fields(text), " ")
				return nil
			}
			return err
		}).Should(Succeed(), c.what)
		if failure != "" {
			return failure
		}
	}
	return ""
}

const failedUnits = `for unit in etcd-restore post-reboot aiokube bootkube; do
if systemctl is-failed --quiet $unit.service; then journalctl --boot --unit $unit.service --lines 3 --output cat --no-pager; fi; done`
