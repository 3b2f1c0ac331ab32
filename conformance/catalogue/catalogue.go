// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"errors"
	"fmt"
	"slices"
)

// All returns all checks by module. Last are those that disrupt all modules; among them the outage of the API server,
// after which clients back off, then the comparison with the initial state, and an upgrade, which changes that state.
func All() []Check {
	oneConsole := Requirement{"R-CON-1", "console and downloads have one replica and no affinity rules on a single control-plane node"}
	twoConsoles := Requirement{"R-CON-3", "console and downloads have two replicas on different nodes on other control planes"}
	oneServer := Requirement{"R-AUTH-2", "health checks of both OAuth servers accept a single replica"}
	severalServers := Requirement{"R-AUTH-3", "the OAuth servers have a pod on each control-plane node"}
	routerCopies := operand{
		module: ingress, workloads: routers(), applies: routerAbsent, within: routerWithin,
		requirement: Requirement{"R-ING-3", "ingress does not float: the router comes back to the nodes that the DNS entries point to"},
	}
	consoleCopies := operand{module: console, requirement: oneConsole, workloads: consoles(), within: operandWithin}
	authCopies := operand{module: auth, requirement: oneServer, workloads: oauths(), within: operandWithin}
	return []Check{
		knownTopologies(), nodeCount(), footprint(), unschedulablePods(), budgetsAllow(), pinnedTolerate(), idleWrites(), hostPortRollouts(),

		routerReplicas(), routerPinned(), routerTolerates(), routerPlaced(), routerSeveralReplicas(), routerUnpinned(), routersSpread(),
		routerCopies.rollsOut("SNO-ING-008"), routerCopies.isEvicted("SNO-ING-009"), routerComesBack(routerCopies, "SNO-ING-010"),
		followsTopology("SNO-ING-011", ingress),

		noGuard(), guardPerMember(), guardBudget(), guardOwner(), followsTopology("SNO-ETC-005", etcdGuard),

		notDrained(), wasDrained(), gracefulShutdown(),

		oneReplica("SNO-CON-001", console, oneConsole, consoleServer), oneReplica("SNO-CON-002", console, oneConsole, downloads), consoleAffinity(),
		severalReplicas("SNO-CON-004", console, twoConsoles, consoleServer), severalReplicas("SNO-CON-005", console, twoConsoles, downloads),
		downloadsUnmanaged(),
		consoleCopies.rollsOut("SNO-CON-007"), consoleCopies.isEvicted("SNO-CON-008"), consoleCopies.comesBack("SNO-CON-009"),
		followsTopology("SNO-CON-010", console),

		oneReplica("SNO-AUT-001", auth, oneServer, oauthServer), oneReplica("SNO-AUT-002", auth, oneServer, oauthAPI), noOverride(),
		severalReplicas("SNO-AUT-004", auth, severalServers, oauthServer), severalReplicas("SNO-AUT-005", auth, severalServers, oauthAPI),
		authCopies.rollsOut("SNO-AUT-006"), authCopies.isEvicted("SNO-AUT-007"), authCopies.comesBack("SNO-AUT-008"),
		followsTopology("SNO-AUT-009", auth),

		approverOff(), approverOn(), unknownNodePending(), followsTopology("SNO-APP-004", approver),

		operandsRollOut(), operandsAreEvicted(), operandsOutlastRestarts(), outlastsOutage(), leavesNothing(), outlastsUpgrade(),
	}
}

// routerComesBack has one more control, for routers that a cluster with workers does not pin.
func routerComesBack(o operand, id string) Check {
	c := o.comesBack(id)
	c.Controls = append(c.Controls, Control{Name: "the router avoids control-plane nodes, as a floating router does", Change: func(in *Input) bool {
		return routerSingle(in.State) == "" && len(in.State.Nodes) > len(in.State.ControlPlaneNodes()) && onRouter(keepOffControlPlane)(in)
	}})
	return c
}

// ErrUnknownCheck is returned for an id that no check has.
var ErrUnknownCheck = errors.New("unknown check")

// Lookup returns the check with an id.
func Lookup(id string) (Check, error) {
	for _, c := range All() {
		if c.ID == id {
			return c, nil
		}
	}
	return Check{}, fmt.Errorf("%w %q: `sno-tests list tests` names them", ErrUnknownCheck, id)
}

// Modules returns the modules of checks in their order.
func Modules(checks []Check) []string {
	var modules []string
	for _, check := range checks {
		if !slices.Contains(modules, check.Module) {
			modules = append(modules, check.Module)
		}
	}
	return modules
}
