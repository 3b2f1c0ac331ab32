// Command ingress-operator is a small stand-in for OpenShift's ingress operator, and the example of one that is built on
// controller-runtime and vendors github.com/solonode/sno/ingress. It turns every IngressController into a router Deployment
// and a PodDisruptionBudget, and reports in the IngressController's status. See README.md for what to look at.
//
//	ingress-operator --kubeconfig FILE [--create-default] [--stock] [--fight [--revert-every DURATION]]
//
// There is nothing behind its routers: no image, Service, certificate or DNS. It is meant for clusters with simulated nodes.
package main
