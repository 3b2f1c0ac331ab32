// SPDX-License-Identifier: Apache-2.0

package approver

// Exported for tests.
var (
	EnableNodeClient = enableNodeClient
	Override         = override
)
