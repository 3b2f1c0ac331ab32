// SPDX-License-Identifier: Apache-2.0

// Package kindtarget installs a scenario on a cluster of real kubelets. The stand-ins of the stock operators run
// outside of it, and the controllers as its pods, from images that are built here, with the rights of their config/
// folders. An Experiment tests what the conformance suite does not.
package kindtarget
