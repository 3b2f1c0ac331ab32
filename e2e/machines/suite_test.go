// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"flag"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/testcluster/engine"
	"github.com/solonode/sno/testcluster/nodeimage"
)

// stepTimeout limits a spec, and each condition that a longer spec waits for, also on a busy machine.
const stepTimeout = 10 * time.Minute

// poll and measureInterval are how often a condition is read, and how often what is measured. A machine in software would
// be busy with the answers.
var poll, measureInterval = 500 * time.Millisecond, 100 * time.Millisecond

var (
	prefix  = flag.String("name", "sno", "prefix of the names of machines, which are also those of containers, disks and networks")
	journal = flag.Bool("journal", false, "print the journals of the machines")
	inspect = flag.Bool("inspect", false, "keep a single node running until Ctrl-C when it has passed its checks, with a kubeconfig in -out")
	cuts    = flag.Int("cuts", 3, "power cuts in each phase; Ginkgo's --seed repeats their points")
)

// image is that of the machines' disks, and version that of its Kubernetes, such as v1.35.2.
var image, version string

func TestMachines(t *testing.T) { suite.Run(t, "machines", "e2e-boot") }

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyPollingInterval(poll)
	SetDefaultEventuallyTimeout(stepTimeout)
	EnforceDefaultTimeoutsWhenUsingContexts()
	e := suite.Must(engine.Find(ctx))
	var err error
	image, version, err = nodeimage.Ensure(ctx, e, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
})

// inParallel runs functions, and returns when all have ended. The failure of one ends the contexts of the others.
func inParallel(ctx context.Context, functions ...func(context.Context)) {
	all, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	var failed bool
	var one sync.Mutex
	for _, do := range functions {
		running.Go(func() {
			defer GinkgoRecover()
			passed := false
			defer func() {
				if !passed {
					one.Lock()
					defer one.Unlock()
					failed = true
					cancel()
				}
			}()
			do(all)
			passed = true
		})
	}
	running.Wait()
	if failed {
		Fail("a function that ran in parallel has failed") // Ginkgo reports the first failure
	}
}
