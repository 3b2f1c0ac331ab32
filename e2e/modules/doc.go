// SPDX-License-Identifier: Apache-2.0

// Package modules runs the conformance suite on an embedded cluster for every scenario (R-SUITE-1, R-SUITE-5), in three
// variants of its operators: with the modules' controllers, with operators that vendor the modules, and with stand-ins
// for today's operators, of which exactly the checks in baseline.yaml fail.
package modules
