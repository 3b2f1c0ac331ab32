// Package cli is kubectl-sno: it shows what the modules would change on a cluster, changes it and takes it back.
//
// There is a file for each verb. None of them decides anything: they have the modules look, at a cluster, at a rehearsal of it
// (package rehearsal), or at a must-gather (package offline), and print what comes of it.
package cli
