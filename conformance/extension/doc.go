// Package extension is the program sno-tests: the catalogue of package checks behind the process contract of OpenShift's test
// extensions, so that origin and CI can run it as an external binary (R-SUITE-3), and commands for people.
//
// The contract is implemented here as origin reads it. Its library is not used: it needs a fork of Ginkgo that whoever imports the module
// would have to replace too. Nothing but the answer is ever written to the standard output; what a person reads while waiting goes to the
// standard error. The checks are run without Ginkgo, whose reporter keeps a standard output of its own.
package extension
