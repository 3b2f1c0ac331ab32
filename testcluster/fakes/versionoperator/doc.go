// SPDX-License-Identifier: Apache-2.0

// Package versionoperator is a stand-in for the cluster-version-operator of an old release, in which the downloads
// server of the console and the quorum guard of etcd are static manifests (R-CON-2, R-ETC-3). It creates them, reverts
// changes of the fields in a manifest, and ignores an object while an entry in spec.overrides of the ClusterVersion
// sets it unmanaged. It publishes the observed generation in the status. It runs in the process that starts it:
// Run watches, an Operator acts when a test calls it.
package versionoperator
