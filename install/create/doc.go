// SPDX-License-Identifier: Apache-2.0

// Package create builds the Ignition configs of an installation: that of the live system for bootstrap in place, with
// the additions to the installed node, and that of an all-in-one node.
package create
