// Package controller reconciles the stock machine approver, and reports pending requests and expiring certificates. It approves nothing.
// Decisions are made on live reads; the watches only trigger reconciliations.
package controller
