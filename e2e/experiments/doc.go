// Package experiments shows on real kubelets what a simulated node cannot: traffic through a real proxy, certificates of nodes that join, grace
// periods, guards of a real etcd.
//
// Each is a kindtarget.Experiment that fails where the behaviour is not there, and writes what it has measured as a table of bench.Row.
package experiments
