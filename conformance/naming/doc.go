// SPDX-License-Identifier: Apache-2.0

// Package naming contains the names of checks and the texts of results for Ginkgo, the OpenShift tests extension and
// terminals.
package naming
