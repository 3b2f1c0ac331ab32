// SPDX-License-Identifier: Apache-2.0

// Package hub runs a hub of Open Cluster Management and the agents of its spokes, on embedded clusters. OCM's
// operators, which install both on real clusters, do not run here: the package applies their manifests, and runs the
// programs outside of the clusters with the rights of their service accounts. There are no webhooks.
//
// A spoke is away while the Component of its agent is killed, and a hub between KillAPIServer and StartAPIServer.
package hub
