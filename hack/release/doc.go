// SPDX-License-Identifier: Apache-2.0

// Package release checks a commit as another repository gets its modules: from a module proxy, without go.work and
// replace lines.
package release
