// SPDX-License-Identifier: Apache-2.0

// Package faults runs the controllers on embedded clusters under faults: kills at random moments, a bad API server,
// two leaders at a time. It checks invariants from the audit log and the live objects.
//
// Each controller has a Proxy between it and the API server, which counts its requests, marks them for the audit log,
// kills or stops the process at a request, and answers with errors. Write and the invariants are pure; their tests
// break each invariant once.
package faults
