// SPDX-License-Identifier: Apache-2.0

// Package suite is what the Ginkgo suites of e2e share: labels, the flags -keep and -out, the folder for reports and
// logs, and the command that repeats a failed spec.
package suite
