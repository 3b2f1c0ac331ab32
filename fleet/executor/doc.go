// SPDX-License-Identifier: Apache-2.0

// Package executor computes what the ManifestWorks of a spoke may do: the rights of the account that they name as their
// executor. The work agent refuses a manifest that this account may not apply.
//
// The rights follow from the manifests: to write the objects with these names, and every right that the roles among
// them have, since nobody may grant what he lacks. There is no ServiceAccount, and thus no token: the work agent asks
// the API server about the name only.
//
// Before the rights comes a claim: a ManifestWork by which one hub of several marks a spoke as its own.
package executor
