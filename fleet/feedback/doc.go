// SPDX-License-Identifier: Apache-2.0

// Package feedback carries the state of the modules on a spoke to the hub, without a client of the hub on the spoke. A
// ManifestWork has each operator's own object as a manifest that the work agent only reads (updateStrategy ReadOnly);
// feedback rules copy our conditions into the status of the ManifestWork. The rules and their reader are both here.
package feedback
