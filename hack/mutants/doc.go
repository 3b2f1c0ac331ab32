// SPDX-License-Identifier: Apache-2.0

// Package mutants verifies that the tests of a module detect faults of the module. Every module has mutants of itself
// in mutants.yaml: a text, its replacement, and the test that must fail with it.
//
// For each entry the test must run and pass on the original first. Then the changed file replaces the original for
// the compiler (`go test -overlay`; the tree does not change). A mutant is caught only if the test compiles and
// fails. One that does not compile, or whose text is gone, does not apply, and fails the run too.
package mutants
