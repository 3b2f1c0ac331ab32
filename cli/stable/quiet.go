package stable

import (
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Quiet tells for how long nothing has moved. It goes by what it saw itself: a cluster is never taken to have been quiet before the
// first look.
type Quiet struct {
	// since is when the period began; zero while something moves.
	since time.Time
	marks map[string]string
	first map[string]time.Time
}

// Verdict is what comes of a look and those before it.
type Verdict struct {
	// Quiet is for how long nothing has moved and nothing has changed.
	Quiet time.Duration
	// AtRest is false while something moves or is not known.
	AtRest bool
	// Changed are the objects that have changed since the last look, in order.
	Changed []string
}

// Observe takes in a look (R-OPS-3). It completes the report: what does not tell since when it moves was first seen moving then.
func (q *Quiet) Observe(r *Report, now time.Time) Verdict {
	q.complete(r, now)
	v := Verdict{AtRest: r.AtRest(), Changed: q.changed(r)}
	// What could not be read has no marks. Those of before stay, so that a change in the meantime is still seen.
	if len(r.Unknown) == 0 {
		q.marks = r.Marks
	}
	switch {
	case !v.AtRest:
		q.since = time.Time{}
		return v
	case q.since.IsZero(), len(v.Changed) > 0:
		q.since = now
	}
	v.Quiet = now.Sub(q.since)
	return v
}

func (q *Quiet) complete(r *Report, now time.Time) {
	first := map[string]time.Time{}
	for i := range r.Moving {
		m := &r.Moving[i]
		seen, was := q.first[m.Object]
		if !was {
			seen = now
		}
		first[m.Object] = seen
		if m.Since.IsZero() {
			m.Since = metav1.NewTime(seen)
		}
	}
	q.first = first
}

func (q *Quiet) changed(r *Report) []string {
	if q.marks == nil || len(r.Unknown) > 0 {
		return nil
	}
	changed := map[string]bool{}
	for object, mark := range r.Marks {
		if q.marks[object] != mark {
			changed[object] = true
		}
	}
	for object := range q.marks {
		// Kubernetes deletes old requests, which says nothing about now.
		if _, is := r.Marks[object]; !is && !strings.HasPrefix(object, kindRequest+" ") {
			changed[object] = true
		}
	}
	return slices.Sorted(maps.Keys(changed))
}
