// SPDX-License-Identifier: Apache-2.0

// Command olm-operator is an operator as a person installs it by the Operator Lifecycle Manager, and the example of one
// that vendors github.com/solonode/sno/topology alone. It reads the Infrastructure object and nothing else of
// OpenShift, and keeps one Deployment in the shape that the topology asks for. See README.md.
//
//	olm-operator [--kubeconfig FILE] [--namespace NAMESPACE] [--name NAME] [--image IMAGE] [--pool worker|master]
//	  [--leader-elect=false] [--identity NAME]
package main
