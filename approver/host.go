// SPDX-License-Identifier: Apache-2.0

package approver

import (
	"errors"
	"fmt"

	"github.com/solonode/sno/topology"
)

// ErrInputs is returned for inputs that no cluster can have.
var ErrInputs = errors.New("invalid inputs")

// MachinePresence is whether Machines exist. MachinesUnknown, the zero value, means that they were not read.
type MachinePresence int

// Values of MachinePresence.
const (
	MachinesUnknown MachinePresence = iota
	MachinesAbsent
	MachinesPresent
)

// Host is what an operator that approves requests knows about its cluster. Package topology reads Cluster.
type Host struct {
	Cluster  topology.Cluster
	Machines MachinePresence
}

// Enabled reports whether an operator may approve client certificates: not on a single control-plane node without
// Machines (R-APP-1). Errors are ErrInputs, and topology.ErrClusterNotRead for a Cluster that was not read.
func Enabled(h Host) (bool, error) {
	if err := h.Cluster.Validate(); err != nil {
		return false, fmt.Errorf("%w: Cluster: %w", ErrInputs, err)
	}
	switch h.Machines {
	case MachinesPresent:
		return true, nil
	case MachinesAbsent:
		return !topology.SingleReplica(h.Cluster.ControlPlane.Mode), nil
	case MachinesUnknown:
	}
	return false, fmt.Errorf("%w: Machines are Unknown: read whether there are any", ErrInputs)
}
