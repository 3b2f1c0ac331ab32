// Package manifests writes the manifests that give a cluster its topology and its names: the resources of config.openshift.io, the
// pull secret, mirrors, certificates and machine configs. The topologies are those of package topology (R-TOP-5).
//
// The user's own manifests are added, and may not have the same objects.
package manifests
