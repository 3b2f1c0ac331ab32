// SPDX-License-Identifier: Apache-2.0

// Package install installs a single node. An install-config (installconfig) becomes manifests (manifests) and an
// Ignition config (create, ignition). On the machine, lists of phases (phase) render the control plane, apply the
// manifests and write the disk (bootstrap), restore etcd and join the node after the restart (postreboot), or make an
// all-in-one node (allinone).
package install
