// SPDX-License-Identifier: Apache-2.0

// Package approver stands in for cluster-machine-approver: it approves requests for the client and serving certificates
// of kubelets by Machines (U-APP-2 to U-APP-5). With the vendored module it also reports whether it does for clients.
// It calls no kubelet, since those of embedded clusters are simulated.
package approver
