package checks

import (
	"fmt"
	"regexp"
	"slices"
)

var idShape = regexp.MustCompile(`^SNO-[A-Z]{3}-[0-9]{3}$`)

// Catalogue returns every check, by modules, and what disturbs all of them last: the outage of the API server, after which everybody is busy for a
// while, and then the comparison with how the cluster was found.
func Catalogue() []Check {
	return slices.Concat(
		topologyChecks(), ingressChecks(), etcdGuardChecks(), machineConfigChecks(), consoleChecks(), authChecks(), approverChecks(), disruptionChecks(),
	)
}

// Lookup returns the check of an id.
func Lookup(id string) (Check, error) {
	for _, c := range Catalogue() {
		if c.ID == id {
			return c, nil
		}
	}
	return Check{}, fmt.Errorf("%w %q: `sno-tests list tests` names them", ErrUnknownCheck, id)
}
