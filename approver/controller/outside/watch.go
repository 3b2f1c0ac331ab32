package outside

import (
	"context"
	"hash/fnv"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// breath is the least time between two looks, so that what comes together is looked at together.
	breath = time.Second
	// trouble is how long is waited after a look that failed.
	trouble = 5 * time.Second
)

// watchOn looks until the context ends, whenever there is something new and now and then besides: windows open, limits are lifted, and
// inventories are edited without any request changing.
func (t *tool) watchOn(ctx context.Context, to report) (int, error) {
	changes := &changed{report: to}
	t.say("Watching %d signers. Stop with Ctrl-C.", len(signers))
	for {
		if err := t.readInventory(); err != nil {
			t.say("approve: %v; going on with the last one that could be read", err)
		}
		pause := breath
		_, from, err := t.look(ctx, changes)
		if err != nil && ctx.Err() == nil {
			t.say("approve: %v; trying again in %s", err, trouble)
			pause = trouble
		}
		if !wait(ctx, pause) || (err == nil && !t.waitForNews(ctx, from)) {
			return exitNothingPending, nil
		}
		t.looker.kubelets.forget()
	}
}

// waitForNews returns true when it is time to look again, and false when the context has ended.
func (t *tool) waitForNews(ctx context.Context, from map[string]string) bool {
	watching, cancel := context.WithTimeout(ctx, t.every)
	var watches sync.WaitGroup
	for signer, version := range from {
		watches.Go(func() { t.looker.requests.news(watching, signer, version, t.ring) })
	}
	select {
	case <-t.bell:
	case <-watching.Done():
	}
	cancel()
	watches.Wait()
	return ctx.Err() == nil
}

// news tells whenever somebody waits for a decision who did not at that version, until the context ends. A watch that cannot go on
// tells too: then a look has to find out.
func (r *requests) news(ctx context.Context, signer, version string, tell func()) {
	seconds := int64((10 * time.Minute).Seconds())
	events, err := r.client.Watch(ctx, metav1.ListOptions{FieldSelector: selects(signer), ResourceVersion: version, TimeoutSeconds: &seconds})
	if err == nil {
		defer events.Stop()
		for event := range events.ResultChan() {
			csr, ok := event.Object.(*certificatesv1.CertificateSigningRequest)
			if !ok || (event.Type != watch.Deleted && !decided(csr)) {
				break
			}
		}
	}
	if ctx.Err() == nil {
		tell()
	}
}

// wait returns false when the context ended first.
func wait(ctx context.Context, how time.Duration) bool {
	timer := time.NewTimer(how)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// changed passes on what is new, so that a person who watches reads everything once.
type changed struct {
	report
	last, now map[string]uint64
	news      summary
}

func (c *changed) add(f finding) {
	text := fnv.New64a()
	_, _ = text.Write([]byte(string(f.Outcome) + "\x00" + f.Reason)) // it never fails
	if c.now == nil {
		c.now = map[string]uint64{}
	}
	c.now[f.uid] = text.Sum64()
	if last, seen := c.last[f.uid]; !seen || last != c.now[f.uid] {
		c.news.add(f)
		c.report.add(f)
	}
}

func (c *changed) end(s summary) error {
	news := c.news
	c.last, c.now, c.news = c.now, nil, summary{}
	if news.none() {
		return nil
	}
	return c.report.end(s)
}
