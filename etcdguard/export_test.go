// SPDX-License-Identifier: Apache-2.0

package etcdguard

var (
	Quorum           = quorum
	FailureTolerance = failureTolerance
)
