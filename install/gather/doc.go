// SPDX-License-Identifier: Apache-2.0

// Package gather makes the log bundle of an installation, in openshift-install's layout, without secrets.
//
// In the live system it has the bootstrap phase: failed units, journals, containers, network, rendered assets and
// resources of the cluster. On the installed node it has those of the node, and the bundle of the bootstrap phase,
// which the node keeps until its installation has succeeded (R-BIP-23, U-INS-16).
//
// Files whose names indicate secrets are omitted, and so are manifests of Secrets and MachineConfigs; of those in the
// cluster there are only the names. All other text is redacted by Redact, also that of the earlier bundle.
//
// Redact recognizes private keys in PEM and DER, data of Secrets, values of fields, flags and variables whose names say
// that they are secret, credentials in URLs, headers, proxies and curl's -u, pull secrets, hashes of passwords, and
// tokens of ServiceAccounts, OAuth, kubeadm, GitHub, GitLab, Slack and AWS; also in JSON in JSON, percent encoding,
// hexadecimal, base64, gzip and UTF-16, four deep. An encoding that is too large to check is replaced. It does not
// recognize a password in a sentence or on the command line of another program, and encrypted or binary contents.
//
// A program that fails or is missing is noted in gather.log, and the gathering continues.
package gather
