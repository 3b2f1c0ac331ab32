// Package leftovers finds what an installation has left on the installed node and should have removed: files, units, links, lines of the
// preset, certificates and images of the bootstrap phase, and what upstream's installer leaves (R-BIP-2, R-BIP-26, U-INS-15).
//
// It reads only. A clean node has none, so a test of an installation ends with it.
package leftovers
