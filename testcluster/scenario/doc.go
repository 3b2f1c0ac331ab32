// SPDX-License-Identifier: Apache-2.0

// Package scenario describes clusters after their installation, by name, and installs them into an embedded cluster:
// the eight rows of the table of R-TOP-5, and five baselines that the modules must not change.
//
// The table is written by hand from docs/requirements.md and docs/upstream.md. The modules under test compute nothing
// in it, so that a wrong rule there cannot produce its own expectation.
//
// The field status.defaultPlacement shipped instead of the enhancement's proposal. The enhancement's clusters with
// workers and without a load balancer have the operator's value, because they were installed before and upgraded with
// their workers. Installed today, they have ControlPlane.
package scenario
