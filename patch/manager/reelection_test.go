package manager

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/topology"
)

// The leader election follows a topology that stands, not one that comes and goes, and not before the modules had time to follow it.
func TestReelection(t *testing.T) {
	const (
		ha   = configv1.HighlyAvailableTopologyMode
		sr   = configv1.SingleReplicaTopologyMode
		dual = configv1.DualReplicaTopologyMode
	)
	type reading struct {
		after time.Duration
		mode  configv1.TopologyMode
	}
	for name, test := range map[string]struct {
		readings []reading
		end      time.Duration
		want     []time.Duration
	}{
		"the same":                   {readings: []reading{{0, ha}, {time.Second, ha}}},
		"the same durations":         {readings: []reading{{0, ha}, {time.Second, dual}}},
		"another":                    {readings: []reading{{0, ha}, {time.Second, sr}}, want: []time.Duration{time.Second + settled}},
		"another, read again":        {readings: []reading{{0, sr}, {settled / 2, sr}}, want: []time.Duration{settled}},
		"another that goes at once":  {readings: []reading{{0, sr}, {settled / 2, ha}}},
		"another that comes back":    {readings: []reading{{0, sr}, {settled / 2, ha}, {settled / 4, sr}}, want: []time.Duration{settled*3/4 + settled}},
		"the process ends before it": {readings: []reading{{0, sr}}, end: settled / 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				started := time.Now()
				var got []time.Duration
				r := &reelection{running: topology.LeaderElection(ha), begin: func(mode configv1.TopologyMode) {
					if mode != sr {
						t.Errorf("it begins for %s", mode)
					}
					got = append(got, time.Since(started))
				}}
				for _, reading := range test.readings {
					<-time.After(reading.after)
					r.observe(reading.mode)
				}
				if test.end > 0 {
					<-time.After(test.end)
					r.end()
				}
				<-time.After(time.Minute)
				synctest.Wait()
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("it begins (-want +got):\n%s", diff)
				}
			})
		})
	}
}
