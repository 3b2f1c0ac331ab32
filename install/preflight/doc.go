// Package preflight finds out before an installation what would make it fail: the DNS records (R-BIP-20), an address
// that changes (R-BIP-19), the disk, the clock, registries that do not answer, and manifests that nobody can apply
// before the restart (R-BIP-21).
//
// It only reads. DNS, clock, registries and manifests can be checked on any machine of the node's network, the address
// and the disk on the machine itself. Each finding that is not in order has an advice: what to change.
package preflight
