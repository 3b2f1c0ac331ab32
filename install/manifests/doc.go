// Package manifests writes what an installer tells a cluster of its topology and its names: the resources of config.openshift.io, the
// pull secret, mirrors, certificates and machine configs. The topologies are those of package topology (R-TOP-5).
//
// What a user has put beside it is added, and may not contradict it.
package manifests
