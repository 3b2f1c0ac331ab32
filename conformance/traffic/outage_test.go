// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func at(ms int) time.Time { return time.Unix(1, 0).Add(time.Duration(ms) * time.Millisecond) }

// requests are sent every 100 ms; a letter each: o is answered, x is not.
func requests(answers string) []Sample {
	var samples []Sample
	for i, answer := range answers {
		s := Sample{Sent: at(100 * i), Done: at(100*i + 5)}
		if answer == 'x' {
			s.Problem = "refused"
		}
		samples = append(samples, s)
	}
	return samples
}

func TestOutages(t *testing.T) {
	for _, test := range []struct {
		name    string
		samples []Sample
		want    []Outage
		longest time.Duration
	}{
		{name: "no requests"},
		{name: "none fails", samples: requests("ooo")},
		{name: "one fails", samples: requests("oxo"), want: []Outage{{From: at(100), To: at(200), Failed: 1, Problem: "refused"}}, longest: 100 * time.Millisecond},
		{name: "some in a row are one outage", samples: requests("oxxxo"), want: []Outage{{From: at(100), To: at(400), Failed: 3, Problem: "refused"}}, longest: 300 * time.Millisecond},
		{
			name: "an answer in between makes two", samples: requests("xoxxo"),
			want:    []Outage{{From: at(0), To: at(100), Failed: 1, Problem: "refused"}, {From: at(200), To: at(400), Failed: 2, Problem: "refused"}},
			longest: 200 * time.Millisecond,
		},
		{name: "one that does not end counts until now", samples: requests("oxx"), want: []Outage{{From: at(100), Failed: 2, Problem: "refused"}}, longest: 900 * time.Millisecond},
		{
			// A request that hangs ends after those that were sent later.
			name:    "in order of sending",
			samples: []Sample{{Sent: at(0)}, {Sent: at(200)}, {Sent: at(100), Done: at(900), Problem: "timeout"}},
			want:    []Outage{{From: at(100), To: at(200), Failed: 1, Problem: "timeout"}}, longest: 100 * time.Millisecond,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Outages(test.samples)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if longest := Longest(got, at(1000)); longest != test.longest {
				t.Errorf("the longest lasts %s, want %s", longest, test.longest)
			}
		})
	}
}
