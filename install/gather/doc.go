// SPDX-License-Identifier: Apache-2.0

// Package gather makes the log bundle of an installation, in openshift-install's layout, without secrets.
//
// In the live system it has the bootstrap phase: failed units, journals, containers, network, rendered assets and
// resources of the cluster. On the installed node it has those of the node, and the bundle of the bootstrap phase,
// which the node keeps until its installation has succeeded (R-BIP-23, U-INS-16).
//
// Files whose names indicate secrets are omitted, and so are files with objects of kinds that have credentials, such as
// Secret and MachineConfig; of Secrets and MachineConfigs in the cluster there are only the names. All other text goes
// through Redact, also that of the earlier bundle.
//
// Redact recognizes private keys, data of Secrets, values of fields, flags and variables whose names say that they are
// secret, credentials in URLs, headers, proxies and curl's -u, hashes of passwords, tokens by their forms, contents of
// Ignition files, and whatever looks like base64 of more than 40 characters: certificates are removed with the keys. It
// does not recognize a password in a sentence or on the command line of another program.
//
// A program that fails or is missing is noted in gather.log, and the gathering continues.
package gather
