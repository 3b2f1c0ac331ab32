package report

// mark is a status as it is shown: a failure that is waived looks different from one that is not. They are ordered from the worst.
type mark int

const (
	markFailed mark = iota
	markInconclusive
	markWaived
	markPassed
	markNotApplicable
	markSkipped
)

const marks = int(markSkipped) + 1

func (r Result) mark() mark {
	switch r.Status {
	case Passed:
		return markPassed
	case Failed:
		if r.Waiver != nil {
			return markWaived
		}
		return markFailed
	case Inconclusive:
		return markInconclusive
	case NotApplicable:
		return markNotApplicable
	case Skipped:
		return markSkipped
	}
	// A status that nobody knows must not look like a good one.
	return markFailed
}

// Symbol tells the marks apart without colour.
func (m mark) Symbol() string { return [marks]string{"✘", "?", "⚑", "✔", "–", "–"}[m] }

// Name is a class of the page.
func (m mark) Name() string {
	return [marks]string{"failed", "inconclusive", "waived", "passed", "na", "skipped"}[m]
}

// Words are for people.
func (m mark) Words() string {
	return [marks]string{"failed", "inconclusive", "waived", "passed", "not applicable", "skipped"}[m]
}

// tally counts marks.
type tally [marks]int

func count(results []Result) tally {
	var t tally
	for _, r := range results {
		t[r.mark()]++
	}
	return t
}

func (t *tally) add(other tally) {
	for m, n := range other {
		t[m] += n
	}
}

// Worst is the mark that a cell shows, and whether there is anything to show. What was done counts before what was not.
func (t tally) Worst() (mark, bool) {
	for m, n := range t {
		if n > 0 {
			return mark(m), true
		}
	}
	return markSkipped, false
}

// Done is the number of checks that looked.
func (t tally) Done() int { return t[markFailed] + t[markInconclusive] + t[markWaived] + t[markPassed] }
