// SPDX-License-Identifier: Apache-2.0

// Package kubelet configures a kubelet: one without a cluster that runs the static pods of a live system, or one that
// joins the control plane of its own machine. Drop-ins in DropInDir change the configuration.
package kubelet
