// SPDX-License-Identifier: Apache-2.0

// Package hub reads the clusters of a fleet from their hub of Open Cluster Management: in pages, and of each object
// only what package overview needs. The ManifestWorks of a cluster have all manifests of its controllers.
package hub
