// Package rehearsal is a client on which modules do all that they would do to a cluster, and nothing is written.
//
// What is read comes from a cluster or from a must-gather. What is written is kept beside it, and read from there by whoever reads
// it next, so that a module which writes one thing after the other is seen to the end. With a server each write to an object that is
// still as the cluster has it is a server-side dry run: defaults, admission, rights and conflicts are the API server's own. All others
// are made here, by the library with which the API server decides them.
package rehearsal
