// SPDX-License-Identifier: Apache-2.0

// Package operator keeps one Deployment in the shape that the cluster's topology asks for.
//
//   - desired.go contains the calls of github.com/solonode/sno/topology: replicas, rollout, placement and budget.
//   - operator.go follows the Infrastructure and the operator's own objects, and writes what differs.
//   - differ.go compares the live Deployment with the desired fields.
package operator
