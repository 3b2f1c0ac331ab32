// SPDX-License-Identifier: Apache-2.0

// Package files writes a set of files atomically.
//
// It writes a temporary folder next to the target, syncs it, and renames it. A full disk, a missing permission or a
// crash leaves the target unchanged. The next run removes what a crashed run left.
package files
