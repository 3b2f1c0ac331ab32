// SPDX-License-Identifier: Apache-2.0

// Package vendored is a suite of operators that vendor the modules: the stand-ins of the host operators, the examples,
// and commands that are started instead of a stand-in, as docs/ci.md describes.
package vendored
