// SPDX-License-Identifier: Apache-2.0

// Package bootstrap is bootstrap in place: the phases in the live system, and the config of the installed node
// (R-BIP-6, R-BIP-7).
package bootstrap
