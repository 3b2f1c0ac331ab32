// SPDX-License-Identifier: Apache-2.0

// Package embeddedtarget provides clusters for the conformance suite: an embedded cluster for each scenario, in three
// variants. "sno" has operators that vendor the modules of operands, and the controllers of all modules of this
// repository. "vendored" has an operator that vendors it for every module, and no controllers. "baseline" has stand-ins
// of the stock operators, and no controllers.
package embeddedtarget
