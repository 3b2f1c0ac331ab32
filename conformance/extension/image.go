// SPDX-License-Identifier: Apache-2.0

package extension

// images must be mirrored for disconnected clusters: runner.CopyImage, for clusters where no pod of OpenShift runs a
// shell.
var images = []image{{Index: 1, Registry: "registry.k8s.io", Name: "pause", Version: "3.10"}}
