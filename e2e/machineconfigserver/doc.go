// SPDX-License-Identifier: Apache-2.0

// Package machineconfigserver stands in for the machine-config server of a running cluster (U-INS-17): it serves the
// config of a pool to machines that join, with the kubeconfig for their kubelets' first requests. Like the real one, it
// serves /config/POOL and /healthz by TLS only, and checks the spec versions that a client accepts. The real one
// renders MachineConfigs and converts them to the client's spec, including spec 2; this one has files of spec 3.2, and
// refuses older clients.
package machineconfigserver
