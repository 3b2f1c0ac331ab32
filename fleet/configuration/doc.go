// SPDX-License-Identifier: Apache-2.0

// Package configuration reads and writes what a fleet runs: an AddOnDeploymentConfig whose customizedVariables name the
// modules, their options and the image.
//
// A configuration is immutable: its name ends in a hash of its content. Open Cluster Management deploys an edited
// AddOnDeploymentConfig to every cluster at once, whatever the strategy of the rollout; a new one under another name is
// rolled out. For the same reason the image is part of it, and not of the add-on's manager.
package configuration
