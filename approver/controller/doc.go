// SPDX-License-Identifier: Apache-2.0

// Package controller reconciles the stock machine approver, and reports pending requests and expiring certificates. It
// approves nothing. Decisions use live reads; watches only trigger reconciliations.
package controller
