package controller

import (
	"fmt"
	"math/rand/v2"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/patchtest"
)

// change is something that a person or an installer does, and how everything must be when all is quiet again.
type change struct {
	name string
	mode approver.Mode
	make func(*cluster)
	// restarts is how many times at most the stock approver starts anew, or stops, because of it.
	restarts int
	rests    func(*cluster) error
}

func (c *cluster) optOut(value string) {
	c.edit(deploymentObject, "kubectl-annotate", `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":`+value+`}}}`)
}

func disabledAs(text string) func(*cluster) error {
	return func(c *cluster) error {
		got, _ := c.text()
		disabled, err := approver.NodeClientDisabled(got)
		without, _ := approver.EnableNodeClient(got)
		if !disabled || without != text || *c.deployment().Spec.Replicas != 1 || len(c.version().Spec.Overrides) != 1 {
			return fmt.Errorf("%d replicas, overrides %v, %w:\n%s", *c.deployment().Spec.Replicas, c.version().Spec.Overrides, err, got)
		}
		return nil
	}
}

func isOff(text string) func(*cluster) error {
	return func(c *cluster) error {
		if got, _ := c.text(); got != text || *c.deployment().Spec.Replicas != 0 || len(c.version().Spec.Overrides) != 2 {
			return fmt.Errorf("%d replicas, overrides %v:\n%s", *c.deployment().Spec.Replicas, c.version().Spec.Overrides, got)
		}
		return nil
	}
}

func isGiven(text string) func(*cluster) error {
	return func(c *cluster) error {
		if got, _ := c.text(); got != text {
			return fmt.Errorf("the configuration is\n%s", got)
		}
		return c.untouched()
	}
}

// Cut off at any request, and at any write with the request on its way for a while: the next run finishes it, the stock approver is
// restarted as often as without, and at rest nothing is written.
func TestCrashAnywhere(t *testing.T) {
	const randomSeed = 1
	random := rand.New(rand.NewPCG(randomSeed, 0))
	kills, texts := 40, []string{"", persons}
	if testing.Short() {
		kills, texts = 6, texts[1:]
	}
	for _, text := range texts {
		changes := []change{
			{"disable", approver.NodeClientOff, func(*cluster) {}, 1, disabledAs(text)},
			{"give back", approver.NodeClientOff, func(c *cluster) { c.optOut(`"approver"`) }, 1, isGiven(text)},
			{"turn off", approver.Off, func(c *cluster) { c.optOut(`null`) }, 1, isOff(text)},
			{"disable instead", approver.NodeClientOff, func(*cluster) {}, 2, disabledAs(text)},
			{"turn off instead", approver.Off, func(*cluster) {}, 1, isOff(text)},
			{"highly available", approver.Off, func(c *cluster) { c.flip(ha) }, 1, isGiven(text)},
		}
		t.Run(fmt.Sprintf("%d bytes", len(text)), func(t *testing.T) {
			c := install(t)
			if text != "" {
				c.configure(text)
			}
			killed, starts := 0, c.watchStarts()
			for round := 0; killed < kills; round++ {
				c.flip(sr)
				for _, change := range changes {
					change.make(c)
					starts()
					killed += c.dieTrying(change.mode, random)
					l := c.looker(change.mode)
					l.fuse.Deliver()
					result := l.settle()
					if err := change.rests(c); err != nil || (result.State != patch.InForce && result.State != patch.NotNeeded && result.State != patch.OptedOut) {
						t.Fatalf("random seed %d, round %d, %s: %v, %v", randomSeed, round, change.name, result, err)
					}
					if got := starts(); got > change.restarts {
						t.Errorf("round %d, %s: the stock approver was started or stopped %d times, want %d", round, change.name, got, change.restarts)
					}
					l.atRest()
				}
			}
		})
	}
}

// watchStarts counts how often what runs of the stock approver has changed since the last call.
func (c *cluster) watchStarts() func() int {
	c.Helper()
	watcher, err := c.admin.Watch(c.Context(), &appsv1.DeploymentList{}, client.InNamespace(namespace))
	c.must(err)
	c.Cleanup(watcher.Stop)
	last, seen := "", ""
	return func() int {
		c.Helper()
		until, starts := c.deployment().ResourceVersion, 0
		for seen != until {
			event := <-watcher.ResultChan()
			d, ok := event.Object.(*appsv1.Deployment)
			if !ok {
				c.Fatalf("the watch says %v", event)
			}
			if now := fmt.Sprint(*d.Spec.Replicas, d.Spec.Template.Annotations[editAnnotation]); now != last {
				last = now
				starts++
			}
			seen = d.ResourceVersion
		}
		return starts
	}
}

func someDeath(random *rand.Rand) patchtest.Death {
	return patchtest.Death(random.IntN(int(patchtest.Deaths)))
}

// dieTrying has controllers die on the way until one of them has nothing left to do, or enough have died.
func (c *cluster) dieTrying(mode approver.Mode, random *rand.Rand) (killed int) {
	for range 4 {
		l := c.looker(mode)
		if random.IntN(2) == 0 {
			l.fuse.BlowAtWrite(1, someDeath(random))
		} else {
			l.fuse.Blow(1+random.IntN(8), someDeath(random))
		}
		_, _ = l.try() // it dies, or it waits for the cluster-version-operator
		if l.fuse.Blown() {
			killed++
		}
		c.observe()
		c.rollOut()
		if random.IntN(3) == 0 {
			l.fuse.Deliver()
		}
	}
	return killed
}
