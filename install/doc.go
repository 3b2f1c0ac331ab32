// Package install is the installer of a single node: it makes the Ignition configs, runs the bootstrap phase on the node that it
// installs, and cleans up after the restart.
//
// Data flows one way: an install-config (installconfig) becomes manifests for the topology (manifests) and an Ignition config
// (create, ignition); on the machine, lists of phases (phase) render the control plane, apply the manifests and write the disk
// (bootstrap), restore etcd and join the node after the restart (postreboot), or make an all-in-one node (allinone).
package install
