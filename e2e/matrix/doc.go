// Package matrix runs the conformance suite on many clusters at a time (R-SUITE-1, R-SUITE-5), each in a process of its own, so that whatever happens to one of
// them is a failure of that one. It knows nothing of clusters and of checks: what runs is a command that leaves a report behind.
package matrix
