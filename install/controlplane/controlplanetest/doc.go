// SPDX-License-Identifier: Apache-2.0

// Package controlplanetest has the input of tests of a machine's own control plane.
package controlplanetest
