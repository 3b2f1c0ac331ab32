// SPDX-License-Identifier: Apache-2.0

// Package rollout builds and checks what selects the clusters of a fleet and orders their changes: Placements, and the
// install strategy of the ClusterManagementAddOn. Open Cluster Management carries it out. The checks refuse what it
// accepts and would harm a fleet.
package rollout
