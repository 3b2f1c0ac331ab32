// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch"
)

// ConditionPrefix is the prefix of the types of the conditions on the MachineConfiguration.
const ConditionPrefix = "MachineConfigTopology"

// FieldOwner is the server-side apply field owner of this module.
var FieldOwner = patch.FieldOwner(machineconfig.Name)

// Reasons of this module, least severe first. Others are in packages machineconfig and patch.
const (
	ReasonSettling        = "Settling"        // a change that restarts the node waits until the pool is settled
	ReasonWaitingForNodes = "WaitingForNodes" // the nodes or their pods have not been read yet
	ReasonDrainFailed     = "DrainFailed"     // a budget or a pod kept a drain from ending; it is retried
)
