// SPDX-License-Identifier: Apache-2.0

// Command etcd-operator is a small stand-in for OpenShift's etcd operator, and the example of one that is built on
// controller-runtime and vendors github.com/solonode/sno/etcdguard. It maintains a guard pod for each control-plane
// node and their PodDisruptionBudget, removes members of etcd that have no node, and reports on
// etcds.operator.openshift.io/cluster. See README.md.
//
//	etcd-operator --kubeconfig FILE --etcd-endpoints URL[,URL]... [--etcd-cert FILE --etcd-key FILE --etcd-ca FILE]
//	  [--members-every DURATION] [--image IMAGE]
//	etcd-operator --kubeconfig FILE --stock
//
// It runs no etcd. The guards do nothing on simulated nodes.
package main
