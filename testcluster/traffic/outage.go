package traffic

import (
	"slices"
	"time"
)

// Sample is one request.
type Sample struct {
	// Sent and Done are when it began and ended.
	Sent, Done time.Time
	// Problem is why it was not answered as it should be; empty for one that was.
	Problem string
}

// Outage is a time in which no request was answered.
type Outage struct {
	// From is when the first request failed, To when the first that succeeded again was sent. To is zero where none did.
	From, To time.Time
	// Failed counts requests, and Problem is what the first of them met.
	Failed  int
	Problem string
}

// Length is how long it lasted; for one that did not end, until now.
func (o Outage) Length(now time.Time) time.Duration {
	if o.To.IsZero() {
		return now.Sub(o.From)
	}
	return o.To.Sub(o.From)
}

// Outages finds the times between a failed request and the next that succeeded, in order of when requests were sent.
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

// Longest is the length of the longest of them, and nothing where there is none.
func Longest(outages []Outage, now time.Time) time.Duration {
	longest := time.Duration(0)
	for _, o := range outages {
		longest = max(longest, o.Length(now))
	}
	return longest
}
