package controller

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/solonode/sno/machineconfig"
)

const (
	// firstPause is how long a drain that failed is left alone at first. It doubles with every further failure, up to mostPause.
	firstPause = 10 * time.Second
	mostPause  = 5 * time.Minute
)

// job is one drain: of this very node, for this request.
type job struct {
	node    string
	uid     types.UID
	request machineconfig.Request
	// fits says that it is drained because there is room elsewhere for what is on it.
	fits bool
}

// background is how a job stands.
type background struct {
	job
	// cancel stops the try that runs; nil between two tries.
	cancel context.CancelFunc
	// failures are the tries so far that failed, err is what the last one came to, and again is when the next one begins.
	failures int
	err      error
	again    time.Time
}

// drains runs jobs in the background, at most one for a node, and each again and again until it succeeds or is not wanted any more.
// Nothing of this outlives the process: what is to be done is on the nodes.
type drains struct {
	// try is one try. It returns nil when the request is answered, or when nobody asks any more.
	try func(context.Context, job) error
	// pause is how long the first failure is followed by nothing.
	pause time.Duration
	// wake is told when a try has ended.
	wake chan struct{}

	mu      sync.Mutex
	stopped bool
	tasks   sync.WaitGroup
	all     map[types.UID]*background
}

func newDrains(try func(context.Context, job) error, timeout time.Duration) *drains {
	return &drains{try: try, pause: min(firstPause, timeout), wake: make(chan struct{}, 1), all: map[types.UID]*background{}}
}

// Start implements manager.Runnable: when this process no longer leads, everything stops.
func (d *drains) Start(ctx context.Context) error {
	<-ctx.Done()
	d.mu.Lock()
	d.stopped = true
	for _, each := range d.all {
		each.stop()
	}
	d.mu.Unlock()
	d.tasks.Wait()
	return nil
}

// settle makes the wanted drains run, those whose pause is over, and every other one stop. It returns the wanted ones as they
// stand.
func (d *drains) settle(ctx context.Context, wanted []job) []background {
	d.mu.Lock()
	defer d.mu.Unlock()
	want := map[types.UID]job{}
	for _, j := range wanted {
		want[j.uid] = j
	}
	for uid, each := range d.all {
		if want[uid] == each.job {
			continue
		}
		if each.stop(); each.cancel == nil {
			delete(d.all, uid)
		}
	}
	stand := make([]background, 0, len(wanted))
	for _, j := range wanted {
		each := d.all[j.uid]
		if each == nil {
			each = &background{job: j}
			d.all[j.uid] = each
		}
		// One that is being stopped for another request goes first.
		if each.job == j && each.cancel == nil && !time.Now().Before(each.again) && !d.stopped {
			d.begin(ctx, each)
		}
		stand = append(stand, *each)
	}
	return stand
}

// running names the nodes for which a try is under way, wanted or not.
func (d *drains) running() map[types.UID]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	running := map[types.UID]string{}
	for uid, each := range d.all {
		if each.cancel != nil {
			running[uid] = each.node
		}
	}
	return running
}

// stop stops the node's drain. It tells whether a try is still under way; wake tells when it has ended.
func (d *drains) stop(uid types.UID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	each := d.all[uid]
	if each == nil {
		return false
	}
	if each.cancel == nil {
		delete(d.all, uid)
		return false
	}
	each.cancel()
	return true
}

// fits tells whether the job was begun because there is room elsewhere.
func (d *drains) fits(j job) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	j.fits = true
	return d.all[j.uid] != nil && d.all[j.uid].job == j
}

// begin starts a try. It is not the look's context that ends it, but its values are those of the look.
func (d *drains) begin(ctx context.Context, each *background) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	each.cancel = cancel
	j := each.job
	d.tasks.Go(func() {
		defer cancel()
		err := d.try(ctx, j)
		d.end(each, err, ctx.Err() != nil)
	})
}

func (d *drains) end(each *background, err error, stopped bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	each.cancel = nil
	switch {
	case stopped || err == nil:
		delete(d.all, each.uid)
	default:
		each.err = err
		each.again = time.Now().Add(pauseAfter(each.failures, d.pause))
		each.failures++
	}
	select {
	case d.wake <- struct{}{}:
	default: // it is about to look anyway
	}
}

func (d *background) stop() {
	if d.cancel != nil {
		d.cancel()
	}
}

// pauseAfter is how long to wait after a failure that some others came before.
func pauseAfter(failures int, first time.Duration) time.Duration {
	pause := first
	for range failures {
		if pause *= 2; pause >= mostPause {
			return mostPause
		}
	}
	return pause
}
