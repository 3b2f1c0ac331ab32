// SPDX-License-Identifier: Apache-2.0

package decision

// EnableNodeClient is exported for tests.
var EnableNodeClient = enableNodeClient
