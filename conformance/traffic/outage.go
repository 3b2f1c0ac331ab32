// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"time"
)

// Sample is one request.
type Sample struct {
	Sent, Done time.Time
	// Problem is why the answer is not good; empty for a good one.
	Problem string
}

// Outage is a period in which no request was answered.
type Outage struct {
	// From is when the first request failed, and To when the next successful one was sent; zero if there was none.
	From, To time.Time
	// Failed counts requests, and Problem is that of the first.
	Failed  int
	Problem string
}

// Length returns its duration; for one that has not ended, until now.
func (o Outage) Length(now time.Time) time.Duration {
	if o.To.IsZero() {
		return now.Sub(o.From)
	}
	return o.To.Sub(o.From)
}

// Outages returns the periods between a failed request and the next successful one, by the time of sending.
func Outages(samples []Sample) []Outage {
	samples = slices.SortedStableFunc(slices.Values(samples), func(a, b Sample) int { return a.Sent.Compare(b.Sent) })
	var all []Outage
	var open *Outage
	for _, s := range samples {
		switch {
		case s.Problem == "" && open != nil:
			open.To = s.Sent
			all, open = append(all, *open), nil
		case s.Problem != "" && open == nil:
			open = &Outage{From: s.Sent, Failed: 1, Problem: s.Problem}
		case s.Problem != "":
			open.Failed++
		}
	}
	if open != nil {
		all = append(all, *open)
	}
	return all
}

// Longest returns the length of the longest outage, or 0.
func Longest(outages []Outage, now time.Time) time.Duration {
	longest := time.Duration(0)
	for _, o := range outages {
		longest = max(longest, o.Length(now))
	}
	return longest
}
