// Package versionoperator stands in for the cluster-version-operator of a release of old, in which the downloads server of the console
// and the quorum guard of etcd are static manifests (R-CON-2, R-ETC-3): it brings them, writes them again whenever somebody changed what a manifest
// says, and lets go of one while an entry in the spec.overrides of the ClusterVersion says so. What it has understood of those entries
// stands in the status. It runs inside the process that starts it, on nothing but watches.
package versionoperator
