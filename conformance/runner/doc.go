// SPDX-License-Identifier: Apache-2.0

// Package runner runs the checks of the catalogue on one cluster: it chooses them, waits until the cluster is stable,
// copies Deployments, has acts performed, and judges checks by their controls.
package runner
