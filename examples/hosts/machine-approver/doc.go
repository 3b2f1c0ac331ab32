// SPDX-License-Identifier: Apache-2.0

// Command machine-approver is a small stand-in for OpenShift's machine approver, and the example of one that vendors
// github.com/solonode/sno/approver. It approves certificate signing requests of nodes, with the Machines of the cluster
// and the kubelets' current certificates as second sources, and reports on ClusterOperator machine-approver. See
// README.md.
//
//	machine-approver --kubeconfig FILE [--stock] [--config FILE] [--retry-every DURATION] [--max-pending DURATION]
package main
