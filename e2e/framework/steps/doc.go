// SPDX-License-Identifier: Apache-2.0

// Package steps has what specs of several suites do with an embedded cluster. A step that does not succeed fails the
// spec, and the logs of a failed spec's cluster are among its artifacts.
package steps
