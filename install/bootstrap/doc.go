// Package bootstrap is the bootstrap phase in place, in a live system, and what it hands to the installed node (R-BIP-6, R-BIP-7).
package bootstrap
