// SPDX-License-Identifier: Apache-2.0

// Package preflight checks for reasons why an installation would fail: DNS records (R-BIP-20), an address that changes
// (R-BIP-19), the disk, the image, the clock, unavailable registries, and manifests that cannot be applied before the
// restart (R-BIP-21).
//
// It only reads. Address, disk and image are checked on the machine itself, the others on any machine of the node's
// network.
// Warnings and failures have advice.
package preflight
