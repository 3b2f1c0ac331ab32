// SPDX-License-Identifier: Apache-2.0

package requests

// Exported for tests: parsing and deciding separately saves verifications, and the checks can be chosen.
var (
	Parse    = parse
	DecideBy = decide
	Checks   = checks
	FlowOf   = flowOf
	Failed   = failed
)

func (c check) Name() string { return c.name }
