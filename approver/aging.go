package approver

import (
	"time"

	"github.com/solonode/sno/patch"
)

// AgeLimits are when a person should know.
type AgeLimits struct {
	// Pending is how long a request of a node may wait.
	Pending time.Duration
	// Expiring is how long before its end a certificate of a node should have been renewed, at most a tenth of its life.
	Expiring time.Duration
}

// DefaultAgeLimits are those of a usual kubelet: it gives up on a request after 15 minutes and makes another. It renews when between
// 30 and 10 percent of the life of its certificate are left, so one of 30 days that has less than three days left should have been
// renewed.
var DefaultAgeLimits = AgeLimits{Pending: 15 * time.Minute, Expiring: 72 * time.Hour}

// Aging adds up, one by one, what was seen in one look at the cluster, so that it costs no memory. A value with nothing but Limits
// has seen nothing.
type Aging struct {
	Limits AgeLimits
	// Pending is how many requests of nodes wait for a decision, and Oldest when the oldest was made.
	Pending int
	Oldest  time.Time
	// Certificates is how many certificates were seen, FirstEnd when the first of them ends, and FirstDue when the first should have
	// been renewed.
	Certificates       int
	FirstEnd, FirstDue time.Time
}

// SawPending adds a request that nobody decided on.
func (a *Aging) SawPending(created time.Time) {
	if a.Pending == 0 || created.Before(a.Oldest) {
		a.Oldest = created
	}
	a.Pending++
}

// SawCertificate adds a node's certificate.
func (a *Aging) SawCertificate(notBefore, notAfter time.Time) {
	due := notAfter.Add(-min(a.Limits.Expiring, notAfter.Sub(notBefore)/10))
	if a.Certificates == 0 || notAfter.Before(a.FirstEnd) {
		a.FirstEnd = notAfter
	}
	if a.Certificates == 0 || due.Before(a.FirstDue) {
		a.FirstDue = due
	}
	a.Certificates++
}

// OldestAge is the age of the oldest request that waits, 0 without one.
func (a Aging) OldestAge(now time.Time) time.Duration {
	if a.Pending == 0 {
		return 0
	}
	return max(0, now.Sub(a.Oldest))
}

// LeastLeft is how long the first certificate to end has left, negative when it has ended; false without one.
func (a Aging) LeastLeft(now time.Time) (time.Duration, bool) {
	return a.FirstEnd.Sub(now), a.Certificates > 0
}

// Observe is what to tell: nil when nothing is too old, Failed otherwise, which is reported when it lasts. A certificate that was not
// renewed is the worse of both. The text has no names and no times.
func (a Aging) Observe(now time.Time) *patch.Result {
	switch {
	case a.Certificates > 0 && now.After(a.FirstDue):
		return &patch.Result{State: patch.Failed, Reason: ReasonCertificatesExpiring,
			Message: "A node's certificate is close to its end or beyond it, and was not renewed; approve its request, or see why it makes none"}
	case a.OldestAge(now) > a.Limits.Pending:
		return &patch.Result{State: patch.Failed, Reason: ReasonRequestsPending,
			Message: "A request of a node has waited for too long; decide on it with the outside tool, which also tells what it cannot prove"}
	}
	return nil
}
