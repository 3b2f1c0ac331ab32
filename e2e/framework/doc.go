// SPDX-License-Identifier: Apache-2.0

// Package framework combines an embedded cluster, a scenario, host operators that stand in for stock ones, and
// controllers, each with the rights that it has in production. The main job, the measurements and the fault tests use
// it.
package framework
