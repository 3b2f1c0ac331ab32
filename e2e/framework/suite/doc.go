// SPDX-License-Identifier: Apache-2.0

// Package suite is what the Ginkgo suites of e2e share: labels, the flags -keep, -out and -write, the folder for
// reports and logs, the command that repeats a failed spec, and tables of figures.
package suite
