// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	"github.com/solonode/sno/patch"
)

// AgeLimits are how long a request may be pending, and how long before its end a certificate must have been renewed.
type AgeLimits struct{ Pending, Expiring time.Duration }

// DefaultAgeLimits match the kubelet, which gives up on a request after 15 minutes and renews with 30 to 10 percent of
// the lifetime left.
var DefaultAgeLimits = AgeLimits{Pending: 15 * time.Minute, Expiring: 72 * time.Hour}

// Aging summarizes pending requests and serving certificates.
type Aging struct {
	Limits             AgeLimits
	Pending            int       // undecided requests
	Oldest             time.Time // creation of the first of them
	Certificates       int
	FirstEnd, FirstDue time.Time // when the first of them ends, and when the first should have been renewed
}

// AddPending adds a pending request.
func (a *Aging) AddPending(created time.Time) {
	if a.Pending == 0 || created.Before(a.Oldest) {
		a.Oldest = created
	}
	a.Pending++
}

// AddCertificate adds a serving certificate.
func (a *Aging) AddCertificate(notBefore, notAfter time.Time) {
	due := notAfter.Add(-min(a.Limits.Expiring, notAfter.Sub(notBefore)/10))
	if a.Certificates == 0 || notAfter.Before(a.FirstEnd) {
		a.FirstEnd = notAfter
	}
	if a.Certificates == 0 || due.Before(a.FirstDue) {
		a.FirstDue = due
	}
	a.Certificates++
}

// OldestAge returns the age of the oldest pending request, 0 if there is none.
func (a Aging) OldestAge(now time.Time) time.Duration {
	if a.Pending == 0 {
		return 0
	}
	return max(0, now.Sub(a.Oldest))
}

// Observe returns a failure, or nil. Certificates precede requests.
func (a Aging) Observe(now time.Time) *patch.Result {
	switch {
	case a.Certificates > 0 && now.After(a.FirstDue):
		return newResult(patch.Failed, ReasonCertificatesExpiring,
			"The serving certificate of a node ends soon or has ended, and was not renewed; approve its request, or find out why there is none")
	case a.OldestAge(now) > a.Limits.Pending:
		return newResult(patch.Failed, ReasonRequestsPending,
			"A certificate request of a node is pending for too long; decide on it with the command approve, which also reports what is missing")
	}
	return nil
}
