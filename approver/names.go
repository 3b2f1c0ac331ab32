// SPDX-License-Identifier: Apache-2.0

package approver

const (
	// Name is the module's name, in its field owner, annotations, metrics and flags.
	Name = "approver"

	// ApprovalReason is in the Approved condition of a request. The stock approver's is NodeCSRApprove (U-APP-6).
	ApprovalReason = "SnoNodeCSRApprove"
)
