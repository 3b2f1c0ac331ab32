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
//	<!-- guide: run by TARGET -->             on the line before a fence: this make target of .ci/run does the same
//	<!-- guide: not run: REASON -->           on the line before a fence: nothing runs the block
//
// # Comparison
//
// Outputs are equal if they are the same line by line after these replacements:
//
//   - blanks at the end of a line are removed, and two or more blanks inside a line count as two: columns are as wide
//     as their values;
//   - a duration between blanks or brackets, such as 5m12s, is any other: ages;
//   - a time, alone or with its date, is any other;
//   - a UID is any other;
//   - the suffix of a ReplicaSet, and of a pod of one, is any other.
package guides
