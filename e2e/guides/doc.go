// SPDX-License-Identifier: Apache-2.0

// Package guides runs the commands of the repository's documents on embedded clusters and compares what they print with
// what the documents show.
//
// # Blocks
//
// Commands are in fenced blocks. In a console block, a line that begins with "$ " is a command, which a backslash at
// its end continues on the next line, and the lines up to the next command are all that it prints. A line "..." stands
// for any number of lines. An sh block has commands without their output. All commands of a document run in its order
// and in one shell, on a cluster of their own, and must succeed.
//
// # Markers
//
// A marker is an HTML comment on a line of its own:
//
//	<!-- guide: cluster SCENARIO [FLAGS] -->  once, before the first block that is run: the arguments of sno-run -shell
//	<!-- guide: run by TARGET -->             before a fence: this make target, which .ci/run, nightly or weekly runs, does the same
//	<!-- guide: not run: REASON -->           before a fence: nothing runs the block
//
// # Comparison
//
// Lines are equal after these replacements: blanks at the end are removed, two or more blanks inside count as two, and
// ages, times, UIDs and the suffixes of ReplicaSets and their pods are any others.
package guides
