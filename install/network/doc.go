// SPDX-License-Identifier: Apache-2.0

// Package network reads an NMState document, and writes NetworkManager's keyfiles (R-BIP-24).
//
// Types of interfaces are ethernet, bond and vlan. Unknown fields are errors, so that all of a document takes effect.
package network
