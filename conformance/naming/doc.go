// Package naming is how checks and their results are called, wherever they are shown: as specs of Ginkgo, as tests of the OpenShift
// tests-extension contract, on a terminal.
package naming
