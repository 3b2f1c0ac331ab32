// SPDX-License-Identifier: Apache-2.0

// Package overview joins what the hub has about each cluster of a fleet to a table, with one state a cluster, and puts
// clusters with equal plans together.
package overview
