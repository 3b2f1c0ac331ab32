// SPDX-License-Identifier: Apache-2.0

// Package inputs computes sums of the inputs of a result: the files of modules and of those that they require, the
// versions of all dependencies, and the tools. Equal sums mean equal inputs.
package inputs
