// Package network reads how a machine is connected, in NMState's form, and writes NetworkManager's keyfiles for it. It implements
// R-BIP-24.
//
// Interfaces are ethernet, bond and vlan. All of a document takes effect: a field that is not known here is a fault, not ignored.
package network
