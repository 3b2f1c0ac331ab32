// SPDX-License-Identifier: Apache-2.0

// Package staticpods returns the files that an operator's installer pod writes to a node: the manifest, a folder for
// each revision, and the certificates, which have no revision (R-REN-8).
package staticpods
