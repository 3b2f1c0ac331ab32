// SPDX-License-Identifier: Apache-2.0

// Package mutants verifies that the tests of a module detect faults that would harm a cluster. The mutants.yaml of the
// module lists them: a text, its replacement, and the test that must fail with it.
//
// The test must first run and pass without the mutation. Then the changed file replaces the original for the compiler
// (`go test -overlay`; the tree does not change). A mutant is caught only if the test compiles and fails.
package mutants
