// SPDX-License-Identifier: Apache-2.0

// Package leftovers finds what an installation should have removed from the installed node: files, units, links, lines
// of the preset, certificates and images of the bootstrap phase, including those of upstream's installer (R-BIP-2,
// R-BIP-26, U-INS-15). It only reads.
package leftovers
