package preflight

import (
	"context"
	"time"
)

// maxSkew is how far two clocks may be apart.
const maxSkew = time.Minute

// clock checks that the machine's clock is not before the configuration was made, whose certificates were not valid
// then, and compares it with the registries'. The nearest of them counts, because theirs may be wrong as well.
func (c *checker) clock(ctx context.Context) []Finding {
	const set = "set the machine's clock, in its firmware too, or give it a time server"
	now := c.Now().UTC().Truncate(time.Second)
	if now.Before(c.Created) {
		return []Finding{failed(set, "the clock has %s, and the configuration was made at %s", now.Format(time.RFC3339), c.Created.UTC().Format(time.RFC3339))}
	}
	at := now.Format(time.RFC3339)
	answers, _ := c.ask(ctx) // the error is for the check of the registries
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
