// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"time"
)

const maxSkew = time.Minute

// clock checks that the machine's clock is not before the time of the configuration, when its certificates were not
// valid, and compares it with the registries' clocks. The nearest of them counts, because they may be wrong too.
func (c *checker) clock(ctx context.Context) []Finding {
	const set = "set the machine's clock, in its firmware too, or configure a time server"
	now := c.Now().UTC().Truncate(time.Second)
	if now.Before(c.Created) {
		return []Finding{failed(set, "the clock has %s, and the configuration was made at %s", now.Format(time.RFC3339), c.Created.UTC().Format(time.RFC3339))}
	}
	at := now.Format(time.RFC3339)
	answers, _ := c.ask(ctx) // the check of the registries reports the error
	var nearest string
	var skew time.Duration
	for _, source := range c.Sources {
		for _, host := range source.Hosts {
			a := answers[host]
			if s := a.at.Sub(a.date); !a.date.IsZero() && (nearest == "" || s.Abs() < skew.Abs()) {
				nearest, skew = host, s
			}
		}
	}
	switch {
	case nearest == "":
		return []Finding{ok("the clock has %s", at)}
	case skew > maxSkew:
		return []Finding{warning(set, "the clock has %s, which is %s ahead of that of %s", at, skew.Round(time.Second), nearest)}
	case skew < -maxSkew:
		return []Finding{warning(set, "the clock has %s, which is %s behind that of %s", at, -skew.Round(time.Second), nearest)}
	}
	return []Finding{ok("the clock has %s, as that of %s", at, nearest)}
}
