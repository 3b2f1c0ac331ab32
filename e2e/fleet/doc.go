// SPDX-License-Identifier: Apache-2.0

// Package fleet is a Ginkgo suite: what a hub of Open Cluster Management learns of single nodes, and does to them.
package fleet
