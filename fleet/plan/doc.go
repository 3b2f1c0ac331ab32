// SPDX-License-Identifier: Apache-2.0

// Package plan brings what would change on a spoke to the hub, without credentials of the hub on the spoke. A
// ManifestWork of its own runs a Pod there with the rights to read what the modules read; the result is the Pod's
// termination message, which the work agent reports as feedback.
package plan
