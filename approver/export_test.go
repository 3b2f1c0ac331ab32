// SPDX-License-Identifier: Apache-2.0

package approver

// EnableNodeClient is exported for tests.
var EnableNodeClient = enableNodeClient
