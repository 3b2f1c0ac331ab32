// SPDX-License-Identifier: Apache-2.0

// Package controlplane starts the control plane of one node on a machine with a real kubelet (testcluster/nodemachine)
// by two methods: kubeadm, and the static pods of sno-render. It times and verifies both; `cmd/sno-node` compares them.
package controlplane
