// SPDX-License-Identifier: Apache-2.0

// Package embeddedtarget provides clusters for the conformance suite: an embedded cluster for each scenario, in two
// variants. "sno" has operators that vendor the modules of this repository, and its controllers. "baseline" has
// stand-ins of the stock operators, and no controllers.
package embeddedtarget
