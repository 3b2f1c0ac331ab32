// SPDX-License-Identifier: Apache-2.0

// Package node has the settings of a machine in its Ignition config, and the paths of the installation on it.
package node
