// SPDX-License-Identifier: Apache-2.0

package decision

import "github.com/solonode/sno/patch"

// observe returns the state of an override that is applied. The state of a Deployment is that of its operand.
func (o override) observe() patch.Result {
	if o.Value {
		return patch.Result{State: patch.InForce, Reason: patch.ReasonAsExpected,
			Message: "The override is set, so the OAuth servers do not wait for three control-plane nodes; a set override blocks upgrades"}
	}
	return patch.Result{State: patch.Progressing, Reason: patch.ReasonRollingOut, Message: "The override is being set"}
}
