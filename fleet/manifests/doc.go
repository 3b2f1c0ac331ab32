// SPDX-License-Identifier: Apache-2.0

// Package manifests renders what installs the controllers, for kubectl-sno and for the spokes of a fleet.
package manifests
