// SPDX-License-Identifier: Apache-2.0

// Package manifests writes the manifests with the cluster's topology and names: resources of config.openshift.io, pull
// secret, mirrors, certificates and machine configs. The topologies are those of package topology (R-TOP-5). The user's
// manifests are added, and must not have the same objects.
package manifests
