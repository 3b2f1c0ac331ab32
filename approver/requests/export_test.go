package requests

// Exported for tests: parsing and deciding apart, so that a signature is not verified again and again, with a choice of the checks.
var (
	Parse    = parse
	DecideBy = decide
	Checks   = checks
	FlowOf   = flowOf
)

// Name returns the name of a check.
func (c check) Name() string { return c.name }
