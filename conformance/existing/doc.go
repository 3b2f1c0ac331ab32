// Package existing finds a cluster that is there already, through a kubeconfig, and looks whether checks can be run on it: does it answer, may the
// account read what is needed, is it OpenShift. It changes nothing.
package existing
