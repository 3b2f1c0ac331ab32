package approver_test

import (
	"testing"
	"time"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/patch"
)

func TestAging(t *testing.T) {
	const day = 24 * time.Hour
	for _, tt := range []struct {
		name    string
		pending []time.Duration    // ages
		left    [][2]time.Duration // since a certificate began, until it ends
		want    string
		oldest  time.Duration
		least   time.Duration
	}{
		{name: "nothing"},
		{name: "a young request", pending: []time.Duration{time.Minute}, oldest: time.Minute},
		{name: "as old as it may be", pending: []time.Duration{15 * time.Minute, 0}, oldest: 15 * time.Minute},
		{name: "an old one among young ones", pending: []time.Duration{0, 16 * time.Minute, time.Minute}, want: approver.ReasonRequestsPending, oldest: 16 * time.Minute},
		{name: "a clock that is behind", pending: []time.Duration{-time.Minute}},
		{name: "a certificate in the middle of its life", left: [][2]time.Duration{{15 * day, 15 * day}}, least: 15 * day},
		{name: "three days left of thirty", left: [][2]time.Duration{{27 * day, 3 * day}}, least: 3 * day},
		{name: "less than that", left: [][2]time.Duration{{1 * day, 29 * day}, {28 * day, 2 * day}}, want: approver.ReasonCertificatesExpiring, least: 2 * day},
		{name: "a certificate of one day", left: [][2]time.Duration{{20 * time.Hour, 4 * time.Hour}}, least: 4 * time.Hour},
		{name: "two hours left of one day", left: [][2]time.Duration{{22 * time.Hour, 2 * time.Hour}}, want: approver.ReasonCertificatesExpiring, least: 2 * time.Hour},
		{name: "ended", left: [][2]time.Duration{{30 * day, -time.Hour}}, want: approver.ReasonCertificatesExpiring, least: -time.Hour},
		{name: "the one to end first is not the one that is due", left: [][2]time.Duration{{20 * time.Hour, 4 * time.Hour}, {300 * day, 2 * day}}, want: approver.ReasonCertificatesExpiring, least: 4 * time.Hour},
		{name: "both", pending: []time.Duration{time.Hour}, left: [][2]time.Duration{{30 * day, time.Hour}}, want: approver.ReasonCertificatesExpiring, oldest: time.Hour, least: time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			aging := approver.Aging{Limits: approver.DefaultAgeLimits}
			for _, age := range tt.pending {
				aging.SawPending(now.Add(-age))
			}
			for _, c := range tt.left {
				aging.SawCertificate(now.Add(-c[0]), now.Add(c[1]))
			}
			got := aging.Observe(now)
			if (got == nil) != (tt.want == "") || (got != nil && (got.Reason != tt.want || got.State != patch.Failed || got.Message == "")) {
				t.Errorf("got %v", got)
			}
			if oldest := aging.OldestAge(now); oldest != tt.oldest || aging.Pending != len(tt.pending) {
				t.Errorf("%d, the oldest %s old", aging.Pending, oldest)
			}
			if least, any := aging.LeastLeft(now); any != (len(tt.left) > 0) || (any && least != tt.least) {
				t.Errorf("%t, %s left", any, least)
			}
		})
	}
}
