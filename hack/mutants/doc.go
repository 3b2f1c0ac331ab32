// Package mutants proves that the tests of a module notice when the module is wrong. Every module keeps wrong versions of
// itself in mutants.yaml: one exact piece of text, what to put in its place, and the test that must then go red.
//
// For each entry the unchanged test must pass first and must run something. Then the changed file is laid over the original
// (`go test -overlay`; the tree itself is never touched). Only a test that compiles and fails counts as caught: a mutant
// that does not compile, or whose text is no longer there, is reported as one that does not apply, and fails the run too.
package mutants
