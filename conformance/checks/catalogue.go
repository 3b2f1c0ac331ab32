// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"regexp"
	"slices"
)

var idShape = regexp.MustCompile(`^SNO-[A-Z]{3}-[0-9]{3}$`)

// Catalogue returns all checks by module. Last are those that disrupt all modules; among them the outage of the API
// server, after which clients back off, then the comparison with the initial state, and an upgrade, which changes that
// state.
func Catalogue() []Check {
	return slices.Concat(
		topologyChecks(), ingressChecks(), etcdGuardChecks(), machineConfigChecks(), consoleChecks(), authChecks(), approverChecks(), disruptionChecks(),
	)
}

// Lookup returns the check with an id.
func Lookup(id string) (Check, error) {
	for _, c := range Catalogue() {
		if c.ID == id {
			return c, nil
		}
	}
	return Check{}, fmt.Errorf("%w %q: `sno-tests list tests` names them", ErrUnknownCheck, id)
}
