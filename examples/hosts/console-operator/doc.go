// Command console-operator is a small stand-in for OpenShift's console operator, and the example of one in the style of
// openshift/library-go that vendors github.com/solonode/sno/console. It makes and keeps the Deployments of the console and of
// its downloads server, and their PodDisruptionBudgets, and reports on consoles.operator.openshift.io/cluster. See README.md
// for what to look at.
//
//	console-operator --kubeconfig FILE [--downloads=false] [--stock]
//
// There is nothing behind its Deployments: no image, Service, Route or configuration. It is meant for clusters with simulated
// nodes.
package main
