// SPDX-License-Identifier: Apache-2.0

// Package demo demonstrates the main job on an embedded cluster for `make run`: a router that floats to a worker, the
// ingress controller that pins it, and the check that it stays. Expected results are the hand-written data of package
// scenario.
package demo
