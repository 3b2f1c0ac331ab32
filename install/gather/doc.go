// Package gather makes the log bundle of an installation, in the layout in which openshift-install gathers it, and without secrets.
//
// In the live system it has what the bootstrap phase leaves: failed units, journals, containers, the network, rendered assets and
// resources of the cluster. On the installed node it has the node's own instead, and the bundle of the bootstrap phase, which the node
// keeps until its installation has succeeded (R-BIP-23, U-INS-16).
//
// Files that hold secrets by their purpose are left out by name. All other text goes through Redact, also that of the older bundle.
// Scan finds in any archive what Redact would have replaced.
//
// A program that fails, or that the machine does not have, is noted in gather.log and does not end the gathering.
package gather
