package stable

import (
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// most is how many changes are told of one look: a large cluster may lose hundreds of nodes at once.
const most = 20

// progress tells what is waited for: what has changed, and now and then how far it is.
type progress struct {
	out     io.Writer
	options Options
	said    map[string]bool
	last    time.Time
}

func (p *progress) tell(now time.Time, waited time.Duration, r *Report, v Verdict) {
	lines := p.news(now, r, v)
	if len(lines) > most {
		lines = append(lines[:most], fmt.Sprintf("... and %d more", len(lines)-most))
	}
	if len(lines) == 0 && now.Sub(p.last) < p.options.Remind {
		return
	}
	p.last = now
	for _, line := range append(lines, p.summary(waited, r, v)) {
		fmt.Fprintf(p.out, "%s %s\n", now.Format(time.TimeOnly), line)
	}
}

// news are the lines that were not said before.
func (p *progress) news(now time.Time, r *Report, v Verdict) []string {
	var lines []string
	current := map[string]bool{}
	say := func(key, line string) {
		if current[key] = true; !p.said[key] {
			lines = append(lines, line)
		}
	}
	for _, u := range r.Unknown {
		say(u.String(), u.String())
	}
	for _, m := range r.Moving {
		say(m.String(), m.String()+", for "+duration.HumanDuration(now.Sub(m.Since.Time)))
	}
	if v.AtRest {
		for _, object := range v.Changed {
			lines = append(lines, object+": has changed")
		}
	}
	for _, note := range r.Notes {
		say(note, note)
	}
	for _, kind := range r.NotServed {
		say("kind "+kind, kind+": left out, the cluster does not serve it")
	}
	p.said = current
	return lines
}

func (p *progress) summary(waited time.Duration, r *Report, v Verdict) string {
	left := "; " + duration.HumanDuration(p.options.Timeout-waited) + " left"
	switch {
	case v.AtRest:
		return fmt.Sprintf("Quiet for %s of %s%s", duration.HumanDuration(v.Quiet), duration.HumanDuration(p.options.Quiet), left)
	case len(r.Unknown) > 0:
		return fmt.Sprintf("Waiting: %d still moving, %d kinds not known%s", len(r.Moving), len(r.Unknown), left)
	}
	return fmt.Sprintf("Waiting: %d still moving%s", len(r.Moving), left)
}
